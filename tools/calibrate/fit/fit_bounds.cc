#include "tools/calibrate/fit/fit_bounds.h"

namespace tools {

std::vector<Unknown> unknowns_of(const engine::GemmFit&) {
  return {{"eta_m", 0.8, 0.5, 1},   {"c_l2bw", 1.5, 0.1, 5},  {"lit", 0.05, 1e-4, 5},
          {"l2cap", 0.5, 0.3, 1},   {"split", 5, 0.01, 60},   {"mwr", 1.05, 1, 1.5},
          {"eta_c", 0.9, 0.3, 1},   {"lat", 0.1, 1e-5, 20},   {"latw", 0.05, 1e-5, 20},
          {"epi", 4, 0.01, 60},     {"ws", 0.7, 1e-3, 1},     {"x0", 5, 0.01, 60},
          {"thr", 0.05, 1e-6, 0.3}, {"floor", 2.5, 0.5, 300}, {"rc", 1, 1e-3, 10},
          {"rt", 1, 0.05, 50},      {"qf", 1, 1e-3, 290},     {"qe", 0.5, 0.05, 1},
          {"qr", 0.05, 1e-5, 5}};
}

std::vector<Unknown> unknowns_of(const engine::PrefillFit&) {
  return {{"eta", 0.8, 0.1, 1},  {"mu", 1, 1e-3, 20},   {"latu", 0.5, 1e-3, 20},
          {"kb", 0.02, 1e-4, 5}, {"ct", 0.7, 1e-3, 5},  {"cx", 1.2, 1, 5},
          {"pn", 1.5, 1, 6},     {"etam", 0.8, 0.3, 1}, {"cf", 15, 1, 40},
          {"cb", 0.05, 1e-4, 5}, {"l2c", 0.5, 0.2, 1},  {"rl2", 1.5, 1, 10},
          {"ws", 0.7, 1e-3, 1},  {"ef", 5, 1e-3, 35}};
}

std::vector<Unknown> unknowns_of(const engine::DecodeFit&) {
  return {{"etam", 0.9, 0.4, 1}, {"l2c", 0.8, 0.4, 1.2}, {"rl2", 2, 1, 8},
          {"cf", 19, 1, 50},     {"cu", 3, 0.01, 15},    {"ca", 1, 1e-3, 15},
          {"gpad", 16, 1, 128},  {"tb", 0.3, 1e-3, 5},   {"sr", 2, 0.3, 20},
          {"pn", 3, 1, 8},       {"mn", 256, 64, 2048},  {"cc", 1, 1e-3, 12},
          {"dw", 0.3, 1e-3, 1},  {"ef", 8, 1e-3, 45}};
}

std::vector<Unknown> unknowns_of(const engine::MoeFit&) {
  return {{"eta_c", 0.7, 0.1, 1}, {"eta_m", 0.85, 0.5, 1}, {"floor", 18, 5, 60},
          {"pn", 2, 1, 6},        {"c1", 0.4, 0.02, 4},    {"c12", 0.5, 0.02, 4},
          {"ct", 1, 0.2, 3},      {"et", 0.8, 0.4, 1},     {"lw", 2, 0.01, 30},
          {"ca", 2, 0.2, 10},     {"ctok", 0.3, 1e-3, 5},  {"x0", 10, 0.1, 80},
          {"lr", 1, 1e-3, 20},    {"l2c", 0.5, 0.05, 1},   {"cT", 1, 0.01, 5}};
}

std::vector<Unknown> unknowns_of(const engine::AbsorbedFit&) {
  return {{"eta_c", 0.7, 0.1, 1}, {"eta_m", 0.8, 0.3, 1}, {"floor", 4, 1, 15}, {"pn", 2, 1, 8},
          {"lat", 1, 1e-3, 20},   {"l2c", 0.5, 0.2, 1},   {"rl2", 2, 1, 8}};
}

std::vector<Unknown> unknowns_of(const engine::PassFit&) {
  return {{"floor", 2, 0.3, 40}, {"eta", 0.8, 0.08, 1}, {"cl2", 0.4, 0.02, 1},
          {"l2c", 0.9, 0.15, 1}, {"cr", 1e-2, 1e-6, 1}, {"pn", 1.2, 1, 8},
          {"lc", 0.3, 1e-3, 3}};
}

std::vector<Unknown> unknowns_of(const engine::CollectiveFit&) {
  return {{"a1", 5, 1, 20},     {"b1", 1.5, 0.05, 6}, {"e1", 0.1, 0.01, 1},  {"a2", 8, 1, 40},
          {"b2", 1.5, 0.05, 6}, {"e2", 0.4, 0.05, 1}, {"a3", 20, 1, 100},    {"b3", 2, 0.05, 10},
          {"e3", 0.78, 0.4, 1}, {"dl", 0.3, 0.01, 1}, {"env", 0.55, 0.2, 1}, {"anv", 20, 2, 100},
          {"q", 8, 2, 30}};
}

std::vector<Unknown> unknowns_of(const engine::BetweenFit&) {
  return {{"a1", 15, 1, 100},  {"b1", 5, 0.05, 50},  {"e1", 0.1, 0.01, 1}, {"a2", 25, 1, 200},
          {"b2", 5, 0.05, 50}, {"e2", 0.4, 0.03, 1}, {"a3", 50, 1, 500},   {"b3", 10, 0.05, 200},
          {"e3", 0.7, 0.2, 1}, {"q", 8, 2, 30}};
}

std::vector<Unknown> unknowns_of(const engine::ExchangeFit&) {
  return {{"a", 20, 1, 100}, {"ae", 0.5, 1e-3, 10},  {"e", 0.6, 0.1, 1},
          {"cs", 18, 2, 60}, {"ct", 0.5, 1e-4, 100}, {"pn", 2, 1, 8}};
}

std::vector<Unknown> unknowns_of(const engine::CopyFit&) {
  return {{"floor", 3, 0.5, 40}, {"eta", 0.8, 0.05, 1}};
}

}  // namespace tools
