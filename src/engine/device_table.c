/* SPDX-License-Identifier: Apache-2.0
 * Devices by name: memory bandwidth, memory, what one application can use of it, and int8
 * operations of the part that would run the products, where the maker publishes them.
 *
 * Bandwidth is nominal: width of the memory bus times transfers a second, which is the whole
 * derivation; where the maker states a rounded figure, the source quotes it. Apple publishes no
 * memory types for phones: theirs are those of the chips found in them. How much of it decoding
 * reaches is the caller's share (default 0.7: published CPU engines lie between 0.4 and 0.95).
 * Int8 operations are dense, of the GPU alone (makers like to count sparse ones and further
 * engines): multiprocessors x operations a clock x boost clock where the source gives no figure. App
 * shares are rules of thumb: phones kill what takes more than about half to two thirds of memory, a
 * graphics card keeps some 8 % for itself. Adding a device is one line here; a figure without a
 * source does not go in. */
#include "engine/estimate.h"

#define BUS(bits, mega_transfers) (1e6 / 8 * (bits) * (mega_transfers)) /* bytes a second */
#define GIB(n)                    ((uint64_t)(n) << 30)
#define TOPS                      1e12

/* clang-format off */
static const pith_device devices[] = {
/*  size  name                title                                             bus bits, MT/s    int8 ops  memory    app  shares  source */
    {0, "phone",              "a current middle-class phone",                 BUS(64, 7500),           0, GIB(8),   0.60, 0, 0, "LPDDR5X-7500"},
    {0, "phone-budget",       "a budget phone (Helio G99 class)",             BUS(32, 4266),           0, GIB(4),   0.50, 0, 0, "MediaTek: LPDDR4X, 2133 MHz"},
    {0, "galaxy-s23",         "Samsung Galaxy S23, Snapdragon 8 Gen 2",       BUS(64, 8400),           0, GIB(8),   0.60, 0, 0, "Qualcomm product brief: LPDDR5X, 4200 MHz"},
    {0, "galaxy-s24",         "Samsung Galaxy S24, Snapdragon 8 Gen 3",       BUS(64, 9600),           0, GIB(8),   0.60, 0, 0, "Qualcomm product brief: LPDDR5X, 4800 MHz"},
    {0, "galaxy-s25",         "Samsung Galaxy S25, Snapdragon 8 Elite",      BUS(64, 10600),           0, GIB(12),  0.60, 0, 0, "Qualcomm product brief: LPDDR5X, 5300 MHz"},
    {0, "oneplus-12",         "OnePlus 12, Snapdragon 8 Gen 3",               BUS(64, 9600),           0, GIB(12),  0.60, 0, 0, "Qualcomm product brief: LPDDR5X, 4800 MHz"},
    {0, "poco-f5",            "Xiaomi Poco F5, Snapdragon 7+ Gen 2",          BUS(32, 6400),           0, GIB(8),   0.60, 0, 0, "Qualcomm product brief: LPDDR5, 3200 MHz; two 16-bit channels"},
    {0, "iphone-13",          "Apple iPhone 13, A15",                         BUS(64, 4266),           0, GIB(4),   0.50, 0, 0, "teardowns: LPDDR4X-4266"},
    {0, "iphone-15-pro",      "Apple iPhone 15 Pro, A17 Pro",                 BUS(64, 6400),           0, GIB(8),   0.60, 0, 0, "teardowns: LPDDR5-6400"},
    {0, "iphone-16-pro",      "Apple iPhone 16 Pro, A18 Pro",                 BUS(64, 7500),           0, GIB(8),   0.60, 0, 0, "Apple: 17 % more than the A17 Pro; LPDDR5X-7500"},
    {0, "laptop",             "a laptop with two channels of DDR5-5600",     BUS(128, 5600),           0, GIB(16),  0.70, 0, 0, "DDR5-5600"},
    {0, "laptop-ddr4",        "a laptop with two channels of DDR4-3200",     BUS(128, 3200),           0, GIB(16),  0.70, 0, 0, "DDR4-3200"},
    {0, "core-ultra-258v",    "Intel Core Ultra 7 258V",                     BUS(128, 8533),           0, GIB(32),  0.70, 0, 0, "Intel ARK: LPDDR5X-8533"},
    {0, "snapdragon-x-elite", "Qualcomm Snapdragon X Elite laptop",          BUS(128, 8448),           0, GIB(16),  0.70, 0, 0, "Qualcomm product brief: LPDDR5X-8448, 135 GB/s"},
    {0, "ryzen-ai-max-395",   "AMD Ryzen AI Max+ 395",                       BUS(256, 8000),           0, GIB(128), 0.75, 0, 0, "AMD: LPDDR5X-8000, 256 GB/s"},
    {0, "macbook-m1",         "Apple M1",                                    BUS(128, 4266),           0, GIB(8),   0.67, 0, 0, "LPDDR4X-4266; Apple newsroom 2022: the M2 has 50 % more"},
    {0, "macbook-m2",         "Apple M2",                                    BUS(128, 6400),           0, GIB(8),   0.67, 0, 0, "Apple newsroom 2022: LPDDR5, 100 GB/s"},
    {0, "macbook-m3",         "Apple M3",                                    BUS(128, 6400),           0, GIB(8),   0.67, 0, 0, "Apple newsroom 2023: LPDDR5, 100 GB/s"},
    {0, "macbook-m3-pro",     "Apple M3 Pro",                                BUS(192, 6400),           0, GIB(18),  0.67, 0, 0, "Apple newsroom 2023: LPDDR5, 150 GB/s"},
    {0, "macbook-m4",         "Apple M4",                                    BUS(128, 7500),           0, GIB(16),  0.67, 0, 0, "Apple newsroom 2024: LPDDR5X, 120 GB/s"},
    {0, "macbook-m4-pro",     "Apple M4 Pro",                                BUS(256, 8533),           0, GIB(24),  0.67, 0, 0, "Apple newsroom 2024: LPDDR5X, 273 GB/s"},
    {0, "macbook-m4-max",     "Apple M4 Max, 40 GPU cores",                  BUS(512, 8533),           0, GIB(48),  0.75, 0, 0, "Apple newsroom 2024: LPDDR5X, 546 GB/s"},
    {0, "macbook-m5",         "Apple M5",                                    BUS(128, 9600),           0, GIB(16),  0.67, 0, 0, "Apple newsroom 2025: LPDDR5X, 153 GB/s"},
    {0, "m3-ultra",           "Apple M3 Ultra",                             BUS(1024, 6400),           0, GIB(96),  0.75, 0, 0, "Apple newsroom 2025: LPDDR5, 819 GB/s"},
    {0, "desktop",            "a desktop with two channels of DDR5-6000",    BUS(128, 6000),           0, GIB(32),  0.80, 0, 0, "DDR5-6000"},
    {0, "raspberry-pi-4",     "Raspberry Pi 4",                               BUS(32, 3200),           0, GIB(4),   0.80, 0, 0, "Raspberry Pi: LPDDR4-3200"},
    {0, "raspberry-pi-5",     "Raspberry Pi 5",                               BUS(32, 4267),           0, GIB(8),   0.80, 0, 0, "Raspberry Pi: LPDDR4X-4267"},
    {0, "orange-pi-5",        "Orange Pi 5, RK3588S",                         BUS(64, 4224),           0, GIB(16),  0.80, 0, 0, "Rockchip: LPDDR4X-4224"},
    {0, "jetson-orin-nano",   "NVIDIA Jetson Orin Nano Super",               BUS(128, 6400),   33 * TOPS, GIB(8),   0.75, 0, 0, "NVIDIA data sheet: 102 GB/s, 67 sparse TOPS"},
    {0, "jetson-agx-orin",    "NVIDIA Jetson AGX Orin 64 GB",                BUS(256, 6400),   85 * TOPS, GIB(64),  0.80, 0, 0, "NVIDIA technical brief: 204.8 GB/s, GPU 170 sparse TOPS"},
    {0, "rtx-3060",           "NVIDIA RTX 3060 12 GB",                      BUS(192, 15000),  102 * TOPS, GIB(12),  0.92, 0, 0, "NVIDIA product page: 360 GB/s; 28 x 2048 x 1.777 GHz"},
    {0, "rtx-3090",           "NVIDIA RTX 3090",                            BUS(384, 19500),  284 * TOPS, GIB(24),  0.92, 0, 0, "NVIDIA Ampere GA102 white paper: 936 GB/s, 284 TOPS"},
    {0, "rtx-4060",           "NVIDIA RTX 4060",                            BUS(128, 17000),  121 * TOPS, GIB(8),   0.92, 0, 0, "NVIDIA product page: 272 GB/s, 242 sparse TOPS"},
    {0, "rtx-4090",           "NVIDIA RTX 4090",                            BUS(384, 21000),  660 * TOPS, GIB(24),  0.92, 0, 0, "NVIDIA Ada white paper: 1008 GB/s, 660.6 TOPS"},
    {0, "rtx-5090",           "NVIDIA RTX 5090",                            BUS(512, 28000),  838 * TOPS, GIB(32),  0.92, 0, 0, "NVIDIA Blackwell white paper: 1792 GB/s, 838 TOPS"},
    {0, "rx-7900-xtx",        "AMD RX 7900 XTX",                            BUS(384, 20000),  123 * TOPS, GIB(24),  0.92, 0, 0, "AMD product page: 960 GB/s; 96 x 512 x 2.5 GHz"},
    {0, "arc-b580",           "Intel Arc B580",                             BUS(192, 19000),  233 * TOPS, GIB(12),  0.92, 0, 0, "Intel ARK: 456 GB/s, 233 TOPS"},
    {0, "a100",               "NVIDIA A100 80 GB SXM",                      BUS(5120, 3186),  624 * TOPS, GIB(80),  0.95, 0, 0, "NVIDIA data sheet: HBM2e, 2039 GB/s, 624 TOPS"},
    {0, "h100",               "NVIDIA H100 SXM",                            BUS(5120, 5238), 1979 * TOPS, GIB(80),  0.95, 0, 0, "NVIDIA data sheet: HBM3, 3.35 TB/s, 3958 sparse TOPS"},
};
/* clang-format on */

bool pith_device_find(size_t index, pith_device *out) {
    if (index >= sizeof devices / sizeof devices[0]) return false;
    *out = devices[index];
    out->size = sizeof *out;
    return true;
}
