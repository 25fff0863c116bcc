// Native main for whole-program runs: no cocotb, no VPI, two evaluations a cycle.
//
// The protocol (rtl_tests/harness/program_bench.py does the same under cocotb, and writes the same bytes):
//   2 cycles of reset; one register write a cycle; one idle cycle; one cycle with start high, which is cycle 0. Every cycle
//   from 0 on is sampled just before its rising edge. The run ends with the cycle in which finished or error_any is seen, or
//   when nothing has moved for +step_quiet cycles (deadlock), or with cycle +step_max_cycles - 1. One cycle of dump follows
//   (STEP_DUMP), however the run ended, then the status reads.
//
// Plusargs:  +step_config=FILE   register writes, a line each: address data (hexadecimal)
//            +step_out=DIR       where records.bin and result.txt go
//            +step_status=FILE   status addresses to read at the end, one a line (hexadecimal)
//            +step_quiet=N +step_max_cycles=N +step_records=0|1 +step_progress=0|1
//            +trace_file=FILE +trace_from=N +trace_to=N   waveform of these cycles (a build with trace)
//            all others belong to the design ($value$plusargs, $readmemh of memory contents)
//
// grants.bin (STEP_GRANTS): the same record a grant: link is the arbitrating unit's number, stop the input it begins to serve.
//
// records.bin: 8 bytes a transfer, in order of cycle, then link: u32 cycle, u16 link, u8 stop, u8 flags (1 empty, 2 done).

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "Vtop.h"
#include "verilated.h"

#if STEP_TRACE
#include "verilated_fst_c.h"
#endif

#ifndef STEP_GRANTS
#define STEP_GRANTS 0  // units that arbitrate
#endif

#ifndef STEP_LINKS
#error "compile with -DSTEP_LINKS=<number of probed links>"
#endif

namespace {

volatile std::sig_atomic_t interrupted = 0;

void on_interrupt(int) { interrupted = 1; }

// A port is an integer up to 64 bits wide, and a VlWide beyond: these two read either, 32 bits at a time.
template <typename T>
uint32_t word(const T& port, int index) {
    return index == 0 ? static_cast<uint32_t>(port) : index == 1 ? static_cast<uint32_t>(static_cast<uint64_t>(port) >> 32) : 0;
}

template <std::size_t N>
uint32_t word(const VlWide<N>& port, int index) {
    return index < static_cast<int>(N) ? port[index] : 0;
}

template <typename T>
int words(const T& port) {
    return (sizeof(port) + 3) / 4;
}

template <typename T>
uint32_t field(const T& port, int low, int width) {  // width <= 8, not across words for the widths used (1 and 4)
    return (word(port, low / 32) >> (low % 32)) & ((1u << width) - 1);
}

struct Record {
    uint32_t cycle;
    uint16_t link;
    uint8_t stop;
    uint8_t flags;
};
static_assert(sizeof(Record) == 8, "records.bin has 8 bytes a transfer");

const char* plusarg(int argc, char** argv, const char* name) {
    const std::string prefix = std::string("+") + name + "=";
    for (int i = 1; i < argc; ++i) {
        if (std::strncmp(argv[i], prefix.c_str(), prefix.size()) == 0) return argv[i] + prefix.size();
    }
    return nullptr;
}

uint64_t number(int argc, char** argv, const char* name, uint64_t otherwise) {
    const char* text = plusarg(argc, argv, name);
    return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

class Run {
public:
    Run(int argc, char** argv)
        : trace_from(number(argc, argv, "trace_from", 0)), trace_to(number(argc, argv, "trace_to", ~uint64_t{0})) {
#if STEP_TRACE
        if (const char* path = plusarg(argc, argv, "trace_file")) {
            Verilated::traceEverOn(true);
            trace = std::make_unique<VerilatedFstC>();
            top->trace(trace.get(), 99);
            trace->open(path);
        }
#endif
    }

    // The first half of a cycle: inputs are set, logic settles; then sample; then `rise`.
    void settle() {
        top->clk = 0;
        top->eval();
        dump(0);
    }

    void rise() {
        top->clk = 1;
        top->eval();
        dump(5);
        time += 10;
    }

    void step() {
        settle();
        rise();
    }

    void finish() {
        top->final();
#if STEP_TRACE
        if (trace) trace->close();
#endif
    }

    const std::unique_ptr<Vtop> top = std::make_unique<Vtop>("");
    uint64_t cycle = 0;  // only for the trace window; 0 until start

private:
    void dump(uint64_t phase) {
        Verilated::threadContextp()->time(time + phase);
#if STEP_TRACE
        if (trace && cycle >= trace_from && cycle <= trace_to) trace->dump(time + phase);
#else
        (void)phase;
#endif
    }

    uint64_t time = 0;
    uint64_t trace_from;
    uint64_t trace_to;
#if STEP_TRACE
    std::unique_ptr<VerilatedFstC> trace;
#endif
};

struct Link {
    uint64_t transfers = 0;
    uint64_t blocked = 0;
    bool valid = false;
    bool ready = false;
};

}  // namespace

double sc_time_stamp() { return static_cast<double>(Verilated::threadContextp()->time()); }

int main(int argc, char** argv) {
    Verilated::commandArgs(argc, argv);
    const char* config_path = plusarg(argc, argv, "step_config");
    const char* out = plusarg(argc, argv, "step_out");
    if (!config_path || !out) {
        std::fprintf(stderr, "+step_config=FILE and +step_out=DIR are needed\n");
        return 2;
    }
    std::ifstream config(config_path);
    if (!config) {
        std::fprintf(stderr, "%s cannot be read\n", config_path);
        return 2;
    }
    const uint64_t quiet_limit = number(argc, argv, "step_quiet", 5000);
    const uint64_t max_cycles = number(argc, argv, "step_max_cycles", 100000000);
    const bool recording = number(argc, argv, "step_records", 1) != 0;
    const bool progress = number(argc, argv, "step_progress", 0) != 0;
    std::FILE* records = std::fopen((std::string(out) + "/records.bin").c_str(), "wb");
    if (!records) {
        std::fprintf(stderr, "%s cannot be written\n", out);
        return 2;
    }
    std::setvbuf(records, nullptr, _IOFBF, 1 << 20);
    std::signal(SIGINT, on_interrupt);
    std::signal(SIGTERM, on_interrupt);

#if STEP_GRANTS
    std::FILE* grants = std::fopen((std::string(out) + "/grants.bin").c_str(), "wb");
    if (!grants) {
        std::fprintf(stderr, "%s cannot be written\n", out);
        return 2;
    }
#endif

    Run run(argc, argv);
    Vtop& top = *run.top;
    top.cfg_valid = 0;
    top.start = 0;
    top.status_addr = 0;
#ifdef STEP_DUMP
    top.dump = 0;
#endif
    top.rst = 1;
    run.step();
    run.step();
    top.rst = 0;
    std::string address, data;
    while (config >> address >> data) {
        top.cfg_valid = 1;
        top.cfg_addr = std::strtoul(address.c_str(), nullptr, 16);
        top.cfg_data = std::strtoul(data.c_str(), nullptr, 16);
        run.step();
    }
    top.cfg_valid = 0;
    run.step();

    std::vector<Link> links(STEP_LINKS);
    const char* reason = nullptr;
    uint64_t cycle = 0, quiet = 0;
    const auto began = std::chrono::steady_clock::now();
    auto told = began;
    top.start = 1;
    while (true) {
        run.cycle = cycle;
        run.settle();
        bool moved = false;
        for (int w = 0; w < (STEP_LINKS + 31) / 32; ++w) {
            const uint32_t valid = word(top.probe_valid, w), ready = word(top.probe_ready, w);
            uint32_t fires = valid & ready, blocked = valid & ~ready;
            for (; blocked; blocked &= blocked - 1) ++links[32 * w + __builtin_ctz(blocked)].blocked;
            moved |= fires != 0;
            for (; fires; fires &= fires - 1) {
                const int link = 32 * w + __builtin_ctz(fires);
                ++links[link].transfers;
                if (recording) {
                    const uint8_t flags = field(top.probe_empty, link, 1) | field(top.probe_done, link, 1) << 1;
                    const Record record{static_cast<uint32_t>(cycle), static_cast<uint16_t>(link),
                                        static_cast<uint8_t>(field(top.probe_stop, 4 * link, 4)), flags};
                    std::fwrite(&record, sizeof record, 1, records);
                }
            }
        }
#if STEP_GRANTS
        for (int unit = 0; unit < STEP_GRANTS; ++unit) {
            if (!field(top.grant_valid, unit, 1)) continue;
            const Record record{static_cast<uint32_t>(cycle), static_cast<uint16_t>(unit),
                                static_cast<uint8_t>(field(top.grant_index, 8 * unit, 8)), 0};
            std::fwrite(&record, sizeof record, 1, grants);
        }
#endif
#ifdef STEP_MEM_BUSY
        moved |= top.mem_busy != 0;
#endif
        quiet = moved ? 0 : quiet + 1;
        if (top.error_any) reason = "error";
        else if (top.finished) reason = "finished";
        else if (quiet >= quiet_limit) reason = "deadlock";
        else if (cycle + 1 >= max_cycles) reason = "max_cycles";
        else if (interrupted) reason = "interrupted";
        if (reason) break;
        run.rise();
        top.start = 0;
        ++cycle;
        if (progress && (cycle & 127) == 0) {
            const auto now = std::chrono::steady_clock::now();
            if (now - told > std::chrono::seconds(2)) {
                told = now;
                const double seconds = std::chrono::duration<double>(now - began).count();
                std::fprintf(stderr, "  %llu cycles, %.0f cycles/s\n", static_cast<unsigned long long>(cycle), cycle / seconds);
            }
        }
    }

    std::FILE* result = std::fopen((std::string(out) + "/result.new").c_str(), "w");
    if (!result) {
        std::fprintf(stderr, "%s cannot be written\n", out);
        return 2;
    }
    std::fprintf(result, "reason %s\ncycles %llu\n", reason, static_cast<unsigned long long>(cycle));
    for (int link = 0; link < STEP_LINKS; ++link) {
        std::fprintf(result, "link %d %llu %llu %u %u\n", link, static_cast<unsigned long long>(links[link].transfers),
                     static_cast<unsigned long long>(links[link].blocked), field(top.probe_valid, link, 1),
                     field(top.probe_ready, link, 1));
    }
    std::fprintf(result, "unit_state ");
    for (int w = words(top.unit_state) - 1; w >= 0; --w) std::fprintf(result, "%08x", word(top.unit_state, w));
    std::fprintf(result, "\n");
    run.rise();
    top.start = 0;
#ifdef STEP_DUMP
    top.dump = 1;
    run.step();
    top.dump = 0;
#endif
    if (const char* status_path = plusarg(argc, argv, "step_status")) {
        std::ifstream status(status_path);
        while (status >> address) {
            top.status_addr = std::strtoul(address.c_str(), nullptr, 16);
            run.step();  // a registered answer is there after one cycle
            run.settle();
            std::fprintf(result, "status %x %08x\n", static_cast<unsigned>(top.status_addr), static_cast<unsigned>(top.status_data));
            run.rise();
        }
    }
    run.finish();
    bool written = std::fclose(records) == 0;
#if STEP_GRANTS
    written = std::fclose(grants) == 0 && written;
#endif
    written = std::fclose(result) == 0 && written;
    // result.txt appears last and whole: where it is, everything is.
    written = written && std::rename((std::string(out) + "/result.new").c_str(), (std::string(out) + "/result.txt").c_str()) == 0;
    if (!written) std::fprintf(stderr, "%s cannot be written\n", out);
    return written ? 0 : 2;
}
