"""Make the font that the site sets its formulas in anew: the characters below, of STIX Two Math, with its MATH table.

    python studies/maths_font.py stix-two-math-latin-400-normal.woff2

The file is that of the package ``@fontsource/stix-two-math`` (5.3.0; SIL Open Font License, which stands beside the result).
fontTools comes with matplotlib; for woff2 it needs ``pip install brotli``. The same file gives the same bytes.
"""

import sys
from pathlib import Path

FONTS = Path(__file__).parent.parent / "src" / "attlas" / "report" / "fonts"
CHARACTERS = [
    *range(0x20, 0x7F), *range(0xA0, 0x100),  # of sentences
    0x131, 0x237, *range(0x2C6, 0x2DE),  # dotless letters and accents
    *range(0x391, 0x3AA), *range(0x3B1, 0x3CA), 0x3D1, 0x3D5, 0x3D6, 0x3F0, 0x3F1, 0x3F5,  # Greek, and its variants
    *range(0x2000, 0x2070), 0x2102, 0x210E, 0x2113, 0x2115, 0x211D, 0x2124,  # spaces, dashes, h, l, sets of numbers
    *range(0x2190, 0x219A), 0x21A6, 0x21D2, 0x21D4, *range(0x2200, 0x2270), 0x226A, 0x226B, *range(0x2295, 0x229A),
    *range(0x22A4, 0x22A6), 0x22C5, 0x22EE, 0x22EF, 0x2308, 0x2309, 0x230A, 0x230B, 0x27E8, 0x27E9,
    *range(0x27F5, 0x27FB), 0x2A00,
    *range(0x1D400, 0x1D49C),  # bold, italic and bold italic letters
    0x1D49C, *range(0x1D538, 0x1D552), *range(0x1D6A4, 0x1D71C),  # letters of script and of sets; Greek, upright and italic
]  # fmt: skip


def main(source: str) -> None:
    """Write the font."""
    from fontTools import subset

    options = subset.Options(
        flavor="woff2",
        layout_features=["kern", "liga", "locl", "mark", "mkmk", "ssty", "dtls", "flac"],
        drop_tables=["DSIG"],
        notdef_outline=True,
        hinting=False,
        name_IDs=[0, 1, 2, 5, 13, 14],  # its licence among them
    )
    font = subset.load_font(source, options)
    font.recalcTimestamp = False
    maker = subset.Subsetter(options)
    maker.populate(unicodes=CHARACTERS)
    maker.subset(font)
    FONTS.mkdir(exist_ok=True)
    subset.save_font(font, FONTS / "stix-two-math.woff2", options)
    print((FONTS / "stix-two-math.woff2").stat().st_size, "bytes")


if __name__ == "__main__":
    main(sys.argv[1])
