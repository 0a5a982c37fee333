/* SPDX-License-Identifier: Apache-2.0
 * Devices by name: memory bandwidth, memory, what one application can use of it, and int8
 * operations of the part that would run the products, where the maker publishes them.
 *
 * Bandwidth is nominal: transfers a second times the width of the bus, as the makers state it.
 * How much of it decoding reaches is the caller's share (default 0.7: published CPU engines lie
 * between 0.4 and 0.95). App shares are rules of thumb: phones kill what takes more than about
 * half to two thirds of memory, a graphics card keeps some 8 % for itself. Adding a device is one
 * line here; a figure without a source does not go in. */
#include "engine/estimate.h"

#define GB     1e9
#define GIB(n) ((uint64_t)(n) << 30)
#define TOPS   1e12

/* clang-format off */
static const pith_device devices[] = {
/*  size  name                title                                  bandwidth   int8 ops    memory   app  shares  source */
    {0, "phone",              "a current middle-class phone",           60 * GB,          0, GIB(8),  0.60, 0, 0, "64-bit LPDDR5X-7500: 7.5 GT/s x 8 B"},
    {0, "phone-budget",       "a budget phone (Helio G99 class)",     17.1 * GB,          0, GIB(4),  0.50, 0, 0, "MediaTek: 32-bit LPDDR4X-4266"},
    {0, "galaxy-s23",         "Samsung Galaxy S23, Snapdragon 8 Gen 2", 67.2 * GB,        0, GIB(8),  0.60, 0, 0, "Qualcomm product brief: LPDDR5X 4200 MHz, 64 bits"},
    {0, "galaxy-s24",         "Samsung Galaxy S24, Snapdragon 8 Gen 3", 76.8 * GB,        0, GIB(8),  0.60, 0, 0, "Qualcomm product brief: LPDDR5X 4800 MHz, 64 bits"},
    {0, "galaxy-s25",         "Samsung Galaxy S25, Snapdragon 8 Elite", 84.8 * GB,        0, GIB(12), 0.60, 0, 0, "Qualcomm product brief: LPDDR5X 5300 MHz, 64 bits"},
    {0, "oneplus-12",         "OnePlus 12, Snapdragon 8 Gen 3",       76.8 * GB,          0, GIB(12), 0.60, 0, 0, "Qualcomm product brief: LPDDR5X 4800 MHz, 64 bits"},
    {0, "poco-f5",            "Xiaomi Poco F5, Snapdragon 7+ Gen 2",  51.2 * GB,          0, GIB(8),  0.60, 0, 0, "Qualcomm product brief: LPDDR5 3200 MHz, 64 bits"},
    {0, "iphone-13",          "Apple iPhone 13, A15",                 34.1 * GB,          0, GIB(4),  0.50, 0, 0, "64-bit LPDDR4X-4266: 4.266 GT/s x 8 B"},
    {0, "iphone-15-pro",      "Apple iPhone 15 Pro, A17 Pro",         51.2 * GB,          0, GIB(8),  0.60, 0, 0, "64-bit LPDDR5-6400: 6.4 GT/s x 8 B"},
    {0, "iphone-16-pro",      "Apple iPhone 16 Pro, A18 Pro",           60 * GB,          0, GIB(8),  0.60, 0, 0, "64-bit LPDDR5X-7500: 7.5 GT/s x 8 B"},
    {0, "laptop",             "a laptop with two channels of DDR5-5600", 89.6 * GB,       0, GIB(16), 0.70, 0, 0, "128-bit DDR5-5600: 5.6 GT/s x 16 B"},
    {0, "laptop-ddr4",        "a laptop with two channels of DDR4-3200", 51.2 * GB,       0, GIB(16), 0.70, 0, 0, "128-bit DDR4-3200: 3.2 GT/s x 16 B"},
    {0, "core-ultra-258v",    "Intel Core Ultra 7 258V",             136.5 * GB,          0, GIB(32), 0.70, 0, 0, "Intel ARK: LPDDR5X-8533, 128 bits"},
    {0, "snapdragon-x-elite", "Qualcomm Snapdragon X Elite laptop",    135 * GB,          0, GIB(16), 0.70, 0, 0, "Qualcomm product brief: 135 GB/s"},
    {0, "ryzen-ai-max-395",   "AMD Ryzen AI Max+ 395",                 256 * GB,          0, GIB(128), 0.75, 0, 0, "AMD: 256-bit LPDDR5X-8000"},
    {0, "macbook-m1",         "Apple M1",                            68.25 * GB,          0, GIB(8),  0.67, 0, 0, "Apple: 68.25 GB/s"},
    {0, "macbook-m2",         "Apple M2",                              100 * GB,          0, GIB(8),  0.67, 0, 0, "Apple newsroom 2022: 100 GB/s"},
    {0, "macbook-m3",         "Apple M3",                              100 * GB,          0, GIB(8),  0.67, 0, 0, "Apple newsroom 2023: 100 GB/s"},
    {0, "macbook-m3-pro",     "Apple M3 Pro",                          150 * GB,          0, GIB(18), 0.67, 0, 0, "Apple newsroom 2023: 150 GB/s"},
    {0, "macbook-m4",         "Apple M4",                              120 * GB,          0, GIB(16), 0.67, 0, 0, "Apple newsroom 2024: 120 GB/s"},
    {0, "macbook-m4-pro",     "Apple M4 Pro",                          273 * GB,          0, GIB(24), 0.67, 0, 0, "Apple newsroom 2024: 273 GB/s"},
    {0, "macbook-m4-max",     "Apple M4 Max, 40 GPU cores",            546 * GB,          0, GIB(48), 0.75, 0, 0, "Apple newsroom 2024: 546 GB/s"},
    {0, "macbook-m5",         "Apple M5",                              153 * GB,          0, GIB(16), 0.67, 0, 0, "Apple newsroom 2025: 153 GB/s"},
    {0, "m3-ultra",           "Apple M3 Ultra",                        819 * GB,          0, GIB(96), 0.75, 0, 0, "Apple newsroom 2025: 819 GB/s"},
    {0, "desktop",            "a desktop with two channels of DDR5-6000", 96 * GB,        0, GIB(32), 0.80, 0, 0, "128-bit DDR5-6000: 6 GT/s x 16 B"},
    {0, "raspberry-pi-4",     "Raspberry Pi 4",                       12.8 * GB,          0, GIB(4),  0.80, 0, 0, "32-bit LPDDR4-3200: 3.2 GT/s x 4 B"},
    {0, "raspberry-pi-5",     "Raspberry Pi 5",                       17.1 * GB,          0, GIB(8),  0.80, 0, 0, "Raspberry Pi: 32-bit LPDDR4X-4267"},
    {0, "orange-pi-5",        "Orange Pi 5, RK3588",                  33.8 * GB,          0, GIB(16), 0.80, 0, 0, "Rockchip: 64-bit LPDDR4X-4224"},
    {0, "jetson-orin-nano",   "NVIDIA Jetson Orin Nano Super",         102 * GB,  33 * TOPS, GIB(8),  0.75, 0, 0, "NVIDIA data sheet: 102 GB/s, 67 sparse TOPS"},
    {0, "jetson-agx-orin",    "NVIDIA Jetson AGX Orin 64 GB",        204.8 * GB, 138 * TOPS, GIB(64), 0.80, 0, 0, "NVIDIA data sheet: 204.8 GB/s, 275 sparse TOPS"},
    {0, "rtx-3060",           "NVIDIA RTX 3060 12 GB",                 360 * GB, 102 * TOPS, GIB(12), 0.92, 0, 0, "NVIDIA Ampere GA102 white paper and product page"},
    {0, "rtx-3090",           "NVIDIA RTX 3090",                       936 * GB, 284 * TOPS, GIB(24), 0.92, 0, 0, "NVIDIA Ampere GA102 white paper"},
    {0, "rtx-4060",           "NVIDIA RTX 4060",                       272 * GB, 121 * TOPS, GIB(8),  0.92, 0, 0, "NVIDIA product page: 272 GB/s, 242 sparse TOPS"},
    {0, "rtx-4090",           "NVIDIA RTX 4090",                      1008 * GB, 660 * TOPS, GIB(24), 0.92, 0, 0, "NVIDIA Ada white paper"},
    {0, "rtx-5090",           "NVIDIA RTX 5090",                      1792 * GB, 838 * TOPS, GIB(32), 0.92, 0, 0, "NVIDIA Blackwell white paper"},
    {0, "rx-7900-xtx",        "AMD RX 7900 XTX",                       960 * GB, 123 * TOPS, GIB(24), 0.92, 0, 0, "AMD product page"},
    {0, "arc-b580",           "Intel Arc B580",                        456 * GB, 233 * TOPS, GIB(12), 0.92, 0, 0, "Intel ARK"},
    {0, "a100",               "NVIDIA A100 80 GB SXM",                2039 * GB, 624 * TOPS, GIB(80), 0.95, 0, 0, "NVIDIA data sheet"},
    {0, "h100",               "NVIDIA H100 SXM",                      3350 * GB, 1979 * TOPS, GIB(80), 0.95, 0, 0, "NVIDIA data sheet"},
};
/* clang-format on */

bool pith_device_find(size_t index, pith_device *out) {
    if (index >= sizeof devices / sizeof devices[0]) return false;
    *out = devices[index];
    out->size = sizeof *out;
    return true;
}
