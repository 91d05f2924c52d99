"""The sentences of the rules of layouts of checkpoints: (name, source, sentence). From core/LAYOUTS.md, which has the words (a, T)."""

LAYOUTS = "quantd, core/LAYOUTS.md"
TRANSFORMERS = f"{LAYOUTS}: transformers 5.23.0"
COMPRESSED = f"{LAYOUTS}: compressed-tensors 0.20.0, llm-compressor 0.14.0.1"
GGUF = f"{LAYOUTS}: gguf 0.19.0"
BNB = f"{LAYOUTS}: bitsandbytes 0.50.2 on a CPU"
SENTENCES = (
    (
        "layout-fp8-tiles",
        TRANSFORMERS,
        "Tiles of 128 x 128, cut off at the edges, all in FLOAT: s = (1/a) * 448, or 1 where a is 0 or s infinite; w = E4M3(x * s), "
        "w_scale_inv = 1/s.",
    ),
    ("layout-int8", COMPRESSED, "In T: scale = a / 127.5 of a row or of the tensor, w = rint(clamp(x / scale, -128, 127))."),
    ("layout-fp8", COMPRESSED, "In T: scale = a / 448 of a row, of the tensor or of a tile of 128 x 128, w = E4M3(x / scale)."),
    (
        "layout-int4",
        COMPRESSED,
        "In T: scale = a / 7.5 of a group, w = rint(clamp(x / scale, -8, 7)) + 8; eight to an INT32, the first lowest.",
    ),
    (
        "layout-int4-zero-point",
        COMPRESSED,
        "In T: scale = (hi - lo) / 15, z = rint(clamp(-8 - lo / scale, -8, 7)), 0 where it is NaN, w = rint(clamp(x / scale + z, -8, "
        "7)) + 8; zero points plus 8 eight to an INT32 down the rows.",
    ),
    ("layout-scale-of-zero", COMPRESSED, "A scale of 0 is replaced by the epsilon of T (2^-23, 2^-10, 2^-7), after the zero point."),
    (
        "layout-nvfp4",
        COMPRESSED,
        "In T: G = the larger of max|x| and the smallest normal number, g = (1/G) * 2688, or 1 where that is not finite. e = E4M3(g * "
        "(a / 6)), the quotient in T and the product in FLOAT, 0.125 instead of 0; w = FP4(x / (e / g)) in FLOAT.",
    ),
    (
        "layout-mxfp4",
        COMPRESSED,
        "2^(m - 2) is added to the bits of a in T, m the bits of its mantissa; the code of the scale 2^(code - 127) is max(E - 2, 0), "
        "E the exponent that FLOAT has, and 0 for denormals; in FLOAT16 127 below 103; 127, and all elements 0, where the carry makes "
        "an infinity. w = FP4(x / 2^(code - 127)), the quotient in T.",
    ),
    ("layout-gguf-floats", GGUF, "FLOAT16 and BFLOAT16, half to even."),
    (
        "layout-gguf-q8-0",
        GGUF,
        "d = a / 127, w = x * (1/d) rounded half away from zero, with d before it is rounded to FLOAT16; 1/d is 0 where d is 0.",
    ),
    (
        "layout-gguf-q4-0",
        GGUF,
        "d = v / -8 (Q5_0: -16), v the first element of the largest magnitude; w = trunc(x * (1/d) + 8.5) (16.5), at most 15 (31), "
        "with d before it is rounded to FLOAT16. What is not finite becomes code 0.",
    ),
    (
        "layout-gguf-q4-1",
        GGUF,
        "m = min(x), d = (max(x) - m) / 15 (Q5_1: 31); w = trunc((x - m) * (1/d) + 0.5), at most 15 (31), with d and m before they are"
        " rounded to FLOAT16.",
    ),
    (
        "layout-gguf-mxfp4",
        GGUF,
        "e = floor(log2(a)) + 125, log2 rounded to FLOAT first, 0 for zeros; w the nearest of 2^(e - 128) * (0, 1, 2, 3, 4, 6, 8, 12, "
        "0, -1, ..., -12), the first of equals.",
    ),
    (
        "layout-bnb-4-bits",
        BNB,
        "Blocks of 64 of the flat weight in FLOAT: absmax = a, y = clamp(x * (1 / max(a, 1e-38)), -1, 1); the code counts the means of"
        " neighbours in the sorted table that are below y. The first of a pair is in the high half.",
    ),
    (
        "layout-bnb-last-block",
        BNB,
        "In a shorter last block absmax is at least 1e-38, and y = x / absmax; an odd end is filled with y = 0.",
    ),
    (
        "layout-bnb-double",
        BNB,
        "offset = mean(absmax); of absmax - offset in blocks of 256 b is the largest magnitude, k = trunc((v * (1/b) + 1) * 32767.5 + "
        "0.5), and the code is the nearest entry of the map to k / 32767.5 - 1; 0 where b is 0.",
    ),
    ("layout-bnb-int8", BNB, "F = FLOAT16(x), a of the row of F; w = rint(F * ((1/a) * 127)) in FLOAT, SCB = a; a row of zeros is zeros."),
    (
        "layout-not-followed",
        LAYOUTS,
        "Where the package makes NaN of zeros or wraps around: s that is infinite is 1 (fp8-tiles), e below 0 is 0 (gguf:mxfp4).",
    ),
    (
        "layout-refused",
        LAYOUTS,
        "NaN, infinities, a row that does not consist of whole groups, and what overflows its type are refused, in both directions.",
    ),
    ("layout-decode-fp8-tiles", TRANSFORMERS, "w * w_scale_inv in FLOAT, rounded once to the output."),
    ("layout-decode-compressed-tensors", COMPRESSED, "(w - z) * scale in T, then rounded to the output."),
    (
        "layout-decode-compressed-tensors-4-bits",
        COMPRESSED,
        "nvfp4: w * (e / g) in FLOAT, rounded to BFLOAT16; mxfp4: w * 2^(code - 127) in BFLOAT16. Then rounded to the output.",
    ),
    ("layout-decode-gguf", GGUF, "w * d, 8 or 16 taken off first; d * w + m, two roundings; in FLOAT, then rounded to the output."),
    (
        "layout-decode-gguf-k-types",
        GGUF,
        "(d * sc) * w - dmin * m in FLOAT, a rounding each (Q3_K, Q6_K: (d * sc) * w), then rounded to the output.",
    ),
    (
        "layout-decode-bnb",
        BNB,
        "map[code] * absmax in FLOAT (FP4's code 8 is -0), absmax = map[code] * b + offset with -double, two roundings; rounded to the"
        " dtype of the text, then to the output.",
    ),
    ("layout-decode-bnb-int8", BNB, "w * SCB * FLOAT(0.007874015718698502), from left to right, in FLOAT."),
)
