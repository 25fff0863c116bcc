// Drives a bench top `in[IN_WORDS*32], out[OUT_WORDS*32], clk` with vectors from a file, one a clock cycle.
// Inputs change after the rising edge, outputs are taken just before the next one.
#include "Vtop.h"
#include "verilated.h"

#include <cstdio>
#include <cstring>
#include <vector>

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s INPUT OUTPUT\n", argv[0]);
        return 2;
    }
    std::FILE* input = std::fopen(argv[1], "rb");
    std::FILE* output = std::fopen(argv[2], "wb");
    if (!input || !output) {
        std::perror("cannot open");
        return 2;
    }
    VerilatedContext context;
    Vtop top{&context};
    top.clk = 1;
    top.eval();
    std::vector<EData> words(IN_WORDS);
    while (std::fread(words.data(), sizeof(EData), IN_WORDS, input) == IN_WORDS) {
        for (int i = 0; i < IN_WORDS; ++i) top.in[i] = words[i];
        top.eval();
        top.clk = 0;
        top.eval();
        for (int i = 0; i < OUT_WORDS; ++i) {
            const EData word = top.out[i];
            std::fwrite(&word, sizeof(EData), 1, output);
        }
        top.clk = 1;
        top.eval();
    }
    top.final();
    const bool failed = std::ferror(input) || std::ferror(output);
    std::fclose(input);
    return std::fclose(output) != 0 || failed;
}
