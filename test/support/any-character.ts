import fc from 'fast-check';

/** Code points before the surrogates, and code points in all without the surrogates. */
const [beforeSurrogates, surrogates, characters] = [0xd800, 0x800, 0x110000 - 0x800];

/** Any character, uniformly: a unit for `fc.string`. The unit `binary` first enumerates all 1.1 million, which takes a second. */
export const anyCharacter: fc.Arbitrary<string> = fc.nat({ max: characters - 1 }).map(
  (index) => String.fromCodePoint(index < beforeSurrogates ? index : index + surrogates),
  (text) => {
    const code = typeof text === 'string' ? (text.codePointAt(0) ?? -1) : -1;
    if (code < 0 || text !== String.fromCodePoint(code)) throw new Error('not one character');
    return code < beforeSurrogates ? code : code - surrogates;
  },
);
