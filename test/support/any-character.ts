import fc from 'fast-check';

/** Unicode without the halves of surrogate pairs: so many come before them, and so many there are in all. */
const [beforeSurrogates, surrogates, characters] = [0xd800, 0x800, 0x110000 - 0x800];

/** Any character, each as likely: a unit for `fc.string`. The unit of the name `binary` first writes down all 1.1 million, for a second. */
export const anyCharacter: fc.Arbitrary<string> = fc.nat({ max: characters - 1 }).map(
  (index) => String.fromCodePoint(index < beforeSurrogates ? index : index + surrogates),
  (text) => {
    const code = typeof text === 'string' ? (text.codePointAt(0) ?? -1) : -1;
    if (code < 0 || text !== String.fromCodePoint(code)) throw new Error('not one character');
    return code < beforeSurrogates ? code : code - surrogates;
  },
);
