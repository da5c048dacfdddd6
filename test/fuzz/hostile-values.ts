import fc from 'fast-check';

/** Values that often break code which expects another type. */
export const hostileValue = fc.constantFrom<unknown>(
  null,
  true,
  false,
  -1,
  0,
  1e308,
  '',
  '\u0000',
  '\u202e',
  'x'.repeat(5_000),
  [],
  {},
  [[]],
  { constructor: { name: 'x' } },
  { toString: null },
  '9007199254740993',
  ['a', null],
);
