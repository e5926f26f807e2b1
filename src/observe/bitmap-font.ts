// Letters of 5 by 7 pixels: small letters, digits and a little punctuation, enough for the labels of a chart.

/** Seven rows of five bits each, two hexadecimal digits a row, the leftmost pixel highest. */
const GLYPHS: Readonly<Record<string, string>> = {
  " ": "00000000000000",
  "0": "0e11131519110e",
  "1": "040c040404040e",
  "2": "0e11010608101f",
  "3": "1e01010e01011e",
  "4": "02060a121f0202",
  "5": "1f101e0101110e",
  "6": "0608101e11110e",
  "7": "1f010204080808",
  "8": "0e11110e11110e",
  "9": "0e11110f01020c",
  ".": "00000000000c0c",
  ",": "000000000c0408",
  "-": "0000001f000000",
  a: "00000e010f110f",
  b: "10101e1111111e",
  c: "00000e1010110e",
  d: "01010f1111110f",
  e: "00000e111f100e",
  f: "0609081c080808",
  g: "000f11110f010e",
  h: "10101619111111",
  i: "04000c0404040e",
  j: "0200060202120c",
  k: "10101214181412",
  l: "0c04040404040e",
  m: "00001a15151111",
  n: "00001619111111",
  o: "00000e1111110e",
  p: "00001e111e1010",
  q: "00000d130f0101",
  r: "00001619101010",
  s: "00000e100e011e",
  t: "08081c08080906",
  u: "0000111111130d",
  v: "00001111110a04",
  w: "0000111115150a",
  x: "0000110a040a11",
  y: "000011110f010e",
  z: "00001f0204081f",
};

const [GLYPH_WIDTH, GLYPH_HEIGHT, ADVANCE] = [5, 7, 6];

export const TEXT_HEIGHT: number = GLYPH_HEIGHT;

export function textWidth(text: string): number {
  return text.length * ADVANCE - 1;
}

/** Calls `paint` for every pixel of the text whose upper left corner is (x, y). Unknown characters are blank. */
export function drawText(text: string, x: number, y: number, paint: (x: number, y: number) => void): void {
  for (const [i, letter] of [...text.toLowerCase()].entries()) {
    const glyph = GLYPHS[letter] ?? GLYPHS[" "]!;
    for (let row = 0; row < GLYPH_HEIGHT; row++) {
      const bits = Number.parseInt(glyph.slice(2 * row, 2 * row + 2), 16);
      for (let column = 0; column < GLYPH_WIDTH; column++) {
        if (bits & (1 << (GLYPH_WIDTH - 1 - column))) paint(x + i * ADVANCE + column, y + row);
      }
    }
  }
}
