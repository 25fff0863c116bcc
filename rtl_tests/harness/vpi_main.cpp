// Verilator main for cocotb: the event loop of a simulator that has no clock of its own.
//
// Verilated models know nothing of time; cocotb drives them through VPI callbacks. One pass of the loop below is
// one time step, in the order of IEEE 1800 section 4: start-of-step callbacks, evaluation and value changes until
// nothing moves, read-write synch (which may write, so evaluate again), read-only synch, on to the next deadline.
//
// Works from Verilator 5.006 on. Newer releases keep deposited values in a queue (doInertialPuts) and say whether
// a write needs another evaluation (evalNeeded); older ones write at once, so there any callback that ran counts as
// a write. That difference is all in `flush_writes`.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>

#include "Vtop.h"
#include "verilated.h"
#include "verilated_vpi.h"

#if STEP_TRACE
#include "verilated_fst_c.h"
#endif

extern "C" void vlog_startup_routines_bootstrap(void);

namespace {

uint64_t now = 0;

constexpr uint64_t NEVER = ~uint64_t{0};

// Brings the writes of the callbacks just run into the model; true if the model must be evaluated again.
bool flush_writes(bool callbacks_ran) {
    bool again = callbacks_ran;
    while (VerilatedVpi::callValueCbs()) again = true;
#if VERILATOR_VERSION_INTEGER >= 5036000
    VerilatedVpi::doInertialPuts();
    while (VerilatedVpi::callValueCbs()) again = true;
    again |= VerilatedVpi::evalNeeded();
    VerilatedVpi::clearEvalNeeded();
#endif
    return again;
}

void settle(Vtop& top) {
    do {
        do {
            top.eval_step();
        } while (flush_writes(false));
    } while (flush_writes(VerilatedVpi::callCbs(cbReadWriteSynch)));
    top.eval_end_step();
}

uint64_t next_deadline(Vtop& top) {
    const uint64_t callback = VerilatedVpi::cbNextDeadline();
    const uint64_t event = top.eventsPending() ? top.nextTimeSlot() : NEVER;
    return callback < event ? callback : event;
}

}  // namespace

double sc_time_stamp() { return static_cast<double>(now); }

int main(int argc, char** argv) {
    const char* trace_path = nullptr;
    for (int i = 1; i < argc; ++i) {
        if (std::strncmp(argv[i], "+trace_file=", 12) == 0) trace_path = argv[i] + 12;
    }
    Verilated::commandArgs(argc, argv);
    Verilated::fatalOnVpiError(false);  // cocotb probes for objects that may not exist
    const auto top = std::make_unique<Vtop>("");

#if STEP_TRACE
    std::unique_ptr<VerilatedFstC> trace;
    Verilated::traceEverOn(true);
    if (trace_path) {
        trace = std::make_unique<VerilatedFstC>();
        top->trace(trace.get(), 99);
        trace->open(trace_path);
    }
#else
    if (trace_path) {
        std::fprintf(stderr, "this build has no waveform support; build it with trace=True\n");
        return 2;
    }
#endif

    vlog_startup_routines_bootstrap();
    VerilatedVpi::callCbs(cbStartOfSimulation);
    flush_writes(false);

    while (!Verilated::gotFinish()) {
        settle(*top);
        VerilatedVpi::callCbs(cbReadOnlySynch);
#if STEP_TRACE
        if (trace) trace->dump(now);
#endif
        const uint64_t next = next_deadline(*top);
        if (next == NEVER) break;
        now = next;
        Verilated::threadContextp()->time(now);
        VerilatedVpi::callCbs(cbNextSimTime);
        flush_writes(false);
        VerilatedVpi::callTimedCbs();
        flush_writes(false);
    }

    top->final();
    VerilatedVpi::callCbs(cbEndOfSimulation);
#if STEP_TRACE
    if (trace) trace->close();
#endif
    return 0;
}
