// Parameters of the fitted forms, one struct a form. Times are in microseconds, cycle counts in
// thousands of clocks, rates relative to the device's datasheet. The forms are in engine/kernels and
// engine/comm; where the values come from is in engine/README.md.
#pragma once

namespace engine {

// Tiled matrix products (engine/kernels/gemm_form.cc).
struct GemmFit {
  double eta_m = 1;   // share of the memory bandwidth reached
  double c_l2bw = 1;  // cache to multiprocessor, in 64 bytes a clock
  double lit = 0;     // latency of one step over the inner dimension
  double l2cap = 1;   // share of the cache a product can use
  double split = 0;   // joining a split inner dimension
  double mwr = 1;     // written bytes over the output's size
  double eta_c = 1;   // share of the matrix peak reached
  double lat = 0;     // start of a kernel
  double latw = 0;    // start of a tile
  double epi = 0;     // writing a tile, in passes over it
  double ws = 1;      // how far waves overlap: 0 whole waves, 1 none
  double x0 = 0;      // loss of small tiles
  double thr = 0;     // slowdown of long kernels (sustained power)
  double floor = 0;
  double rc = 0;  // us that filling and draining the memory's pipeline takes at most
  double rt = 1;  // us of traffic at which it takes half of that
  double qf = 0;  // part of the floor that quantises the input
  double qe = 1;  // share of the bandwidth reached when quantising
  double qr = 0;  // quantising one row on one multiprocessor

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("eta_m", self.eta_m);
    visit("c_l2bw", self.c_l2bw);
    visit("lit", self.lit);
    visit("l2cap", self.l2cap);
    visit("split", self.split);
    visit("mwr", self.mwr);
    visit("eta_c", self.eta_c);
    visit("lat", self.lat);
    visit("latw", self.latw);
    visit("epi", self.epi);
    visit("ws", self.ws);
    visit("x0", self.x0);
    visit("thr", self.thr);
    visit("floor", self.floor);
    visit("rc", self.rc);
    visit("rt", self.rt);
    visit("qf", self.qf);
    visit("qe", self.qe);
    visit("qr", self.qr);
  }
};

// Attention of prompts (engine/kernels/attention_prefill_form.cc).
struct PrefillFit {
  double eta = 1;   // share of the matrix and exponential rates reached
  double mu = 0;    // exponentials of one key
  double latu = 0;  // start of a tile
  double kb = 0;    // latency of 128 keys
  double ct = 0;    // the last tile's tail
  double cx = 1;    // the longest tile alone
  double pn = 2;    // how compute and traffic combine
  double etam = 1;  // share of the memory bandwidth reached
  double cf = 0;    // floor
  double cb = 0;    // one head of one sequence on one multiprocessor
  double l2c = 1;   // share of the cache it can use
  double rl2 = 1;   // cache over memory bandwidth
  double ws = 1;    // as GemmFit::ws
  double tq = 128;  // query rows of a tile
  double pk = 1;    // above 0.5: heads that share keys share a tile
  double ef = 0;    // part of the floor that is the engine's around the kernel: storing, planning

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("eta", self.eta);
    visit("mu", self.mu);
    visit("latu", self.latu);
    visit("kb", self.kb);
    visit("ct", self.ct);
    visit("cx", self.cx);
    visit("pn", self.pn);
    visit("etam", self.etam);
    visit("cf", self.cf);
    visit("cb", self.cb);
    visit("l2c", self.l2c);
    visit("rl2", self.rl2);
    visit("ws", self.ws);
    visit("tq", self.tq);
    visit("pk", self.pk);
    visit("ef", self.ef);
  }
};

// Attention of one token a sequence, keys split over multiprocessors
// (engine/kernels/attention_decode_form.cc).
struct DecodeFit {
  double etam = 1;  // share of the memory bandwidth reached
  double l2c = 1;   // share of the cache it can use
  double rl2 = 1;   // cache over memory bandwidth
  double cf = 0;    // floor
  double cu = 0;    // a unit of work beyond one a multiprocessor
  double ca = 0;    // a KV head of a sequence beyond one a multiprocessor
  double gpad = 1;  // least query rows of a tile
  double tb = 0;    // latency of 128 keys
  double sr = 1;    // rate one multiprocessor streams at, over its share of the bandwidth
  double pn = 2;    // how compute and traffic combine
  double mn = 128;  // least keys of a split
  double cc = 0;    // joining the splits
  double dw = 0;    // how unit costs grow with the head's width
  double ef = 0;    // as PrefillFit::ef

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("etam", self.etam);
    visit("l2c", self.l2c);
    visit("rl2", self.rl2);
    visit("cf", self.cf);
    visit("cu", self.cu);
    visit("ca", self.ca);
    visit("gpad", self.gpad);
    visit("tb", self.tb);
    visit("sr", self.sr);
    visit("pn", self.pn);
    visit("mn", self.mn);
    visit("cc", self.cc);
    visit("dw", self.dw);
    visit("ef", self.ef);
  }
};

// Routed experts in one fused call (engine/kernels/moe.cc).
struct MoeFit {
  double eta_c = 1;
  double eta_m = 1;
  double floor = 0;
  double pn = 2;
  double c1 = 0;    // imbalance over devices at routing skew 1.01
  double c12 = 0;   // the same at 1.2
  double ct = 1;    // experts touched: scale of tokens an expert
  double et = 1;    // and its exponent
  double lw = 0;    // start of a wave
  double ca = 1;    // passes over the activations
  double ctok = 0;  // moving one copy of a token, on one multiprocessor
  double x0 = 0;    // loss of small tiles
  double lr = 0;    // per doubling of local experts
  double l2c = 1;
  double cT = 1;  // passes over the tokens

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("eta_c", self.eta_c);
    visit("eta_m", self.eta_m);
    visit("floor", self.floor);
    visit("pn", self.pn);
    visit("c1", self.c1);
    visit("c12", self.c12);
    visit("ct", self.ct);
    visit("et", self.et);
    visit("lw", self.lw);
    visit("ca", self.ca);
    visit("ctok", self.ctok);
    visit("x0", self.x0);
    visit("lr", self.lr);
    visit("l2c", self.l2c);
    visit("cT", self.cT);
  }
};

// Small products, one a head, around latent attention (engine/kernels/absorbed.cc).
struct AbsorbedFit {
  double eta_c = 1;
  double eta_m = 1;
  double floor = 0;
  double pn = 2;
  double lat = 0;
  double l2c = 1;
  double rl2 = 1;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("eta_c", self.eta_c);
    visit("eta_m", self.eta_m);
    visit("floor", self.floor);
    visit("pn", self.pn);
    visit("lat", self.lat);
    visit("l2c", self.l2c);
    visit("rl2", self.rl2);
  }
};

// One pass over data (engine/kernels/elementwise.cc).
struct PassFit {
  double floor = 0;
  double eta = 1;  // share of the memory bandwidth reached
  double cl2 = 1;  // cache to multiprocessor, in 64 bytes a clock
  double l2c = 1;  // share of the cache it can use
  double cr = 0;   // a thousand clocks one block takes for a KiB of its row
  double pn = 1;   // how rows and traffic combine
  double lc = 0;   // latency of the first bytes from memory

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("floor", self.floor);
    visit("eta", self.eta);
    visit("cl2", self.cl2);
    visit("l2c", self.l2c);
    visit("cr", self.cr);
    visit("pn", self.pn);
    visit("lc", self.lc);
  }
};

// A collective inside one node: three protocols, each a start, a start per peer and a share of the
// link; and reduction in the switch (engine/comm/collective_form.cc).
struct CollectiveFit {
  double a1 = 0, b1 = 0, e1 = 1;
  double a2 = 0, b2 = 0, e2 = 1;
  double a3 = 0, b3 = 0, e3 = 1;
  double dl = 0;       // extra message, in shares
  double env = 1;      // share of the link reached through the switch
  double anv = 0;      // start through the switch
  double q = 8;        // how softly the fastest is taken
  double latency = 1;  // of the link it was fitted on; a slower link starts slower in proportion

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("a1", self.a1);
    visit("b1", self.b1);
    visit("e1", self.e1);
    visit("a2", self.a2);
    visit("b2", self.b2);
    visit("e2", self.e2);
    visit("a3", self.a3);
    visit("b3", self.b3);
    visit("e3", self.e3);
    visit("dl", self.dl);
    visit("env", self.env);
    visit("anv", self.anv);
    visit("q", self.q);
    visit("latency", self.latency);
  }
};

// A collective between nodes: three protocols, each a start, a start per doubling of the ranks and a share
// of the adapter (engine/comm/between_nodes.cc).
struct BetweenFit {
  double a1 = 0, b1 = 0, e1 = 1;
  double a2 = 0, b2 = 0, e2 = 1;
  double a3 = 0, b3 = 0, e3 = 1;
  double q = 8;        // how softly the fastest is taken
  double latency = 1;  // of the link it was fitted on; a slower link starts slower in proportion

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("a1", self.a1);
    visit("b1", self.b1);
    visit("e1", self.e1);
    visit("a2", self.a2);
    visit("b2", self.b2);
    visit("e2", self.e2);
    visit("a3", self.a3);
    visit("b3", self.b3);
    visit("e3", self.e3);
    visit("q", self.q);
    visit("latency", self.latency);
  }
};

// Tokens sent to their experts and back (engine/comm/expert_exchange.cc). The low-latency kernels use
// a, ae, e and pn; the high-throughput ones a, cs, e, ct and pn.
struct ExchangeFit {
  double a = 0;
  double ae = 0;  // per hundred experts
  double e = 1;   // share of the link reached
  double cs = 0;  // GB/s one multiprocessor sends
  double ct = 0;  // ten nanoseconds a token, over the multiprocessors in use
  double pn = 1;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("a", self.a);
    visit("ae", self.ae);
    visit("e", self.e);
    visit("cs", self.cs);
    visit("ct", self.ct);
    visit("pn", self.pn);
  }
};

// A copy between host and device (engine/kernels/copy.cc).
struct CopyFit {
  double floor = 0;
  double eta = 1;  // share of the link reached

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("floor", self.floor);
    visit("eta", self.eta);
  }
};

}  // namespace engine
