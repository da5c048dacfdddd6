import assert from 'node:assert/strict';
import { compareQuantities, parseQuantity, type Quantity } from '../../../src/kit/quantity.ts';

const ONE = 1_000_000_000n;

function read(value: unknown): Quantity {
  const parsed = parseQuantity(value);
  return 'quantity' in parsed ? parsed.quantity : assert.fail(parsed.error);
}

describe('parseQuantity', () => {
  const accepted: [unknown, bigint][] = [
    ['0', 0n],
    ['1', ONE],
    [2, 2n * ONE],
    ['1n', 1n],
    ['1u', 1000n],
    ['500m', ONE / 2n],
    ['.5', ONE / 2n],
    ['5.', 5n * ONE],
    ['+1.5', (3n * ONE) / 2n],
    ['-100m', -ONE / 10n],
    ['1k', 1000n * ONE],
    ['1M', 10n ** 6n * ONE],
    ['1G', 10n ** 9n * ONE],
    ['1T', 10n ** 12n * ONE],
    ['1P', 10n ** 15n * ONE],
    ['1E', 10n ** 18n * ONE],
    ['1Ki', 1024n * ONE],
    ['1Mi', 1024n ** 2n * ONE],
    ['1Gi', 1024n ** 3n * ONE],
    ['1Ti', 1024n ** 4n * ONE],
    ['1Pi', 1024n ** 5n * ONE],
    ['1Ei', 1024n ** 6n * ONE],
    ['0.5Gi', 512n * 1024n ** 2n * ONE],
    ['1e3', 1000n * ONE],
    ['1E3', 1000n * ONE],
    ['1E-3', ONE / 1000n],
    ['12.5e+1', 125n * ONE],
    ['0.0000000001', 1n],
    ['-0.0000000001', -1n],
    ['1e-999999999999', 1n],
    ['0e999999999999', 0n],
    ['9223372036854775808', ((1n << 63n) - 1n) * ONE],
    ['1e999999999999', ((1n << 63n) - 1n) * ONE],
    ['-100E', -((1n << 63n) - 1n) * ONE],
  ];
  for (const [text, nano] of accepted) it(`reads ${text}`, () => assert.equal(read(text).nano, nano));

  const refused = [
    '',
    ' 1',
    '1 ',
    '1K',
    '1ki',
    '1KI',
    '1mi',
    '1Gi2',
    '1..5',
    '1.5.5',
    '-',
    '.',
    'Gi',
    '1e',
    '1e1.5',
    '0x10',
    '1_000',
    '１',
    '1\n',
    '9'.repeat(300),
    1.5,
    Number.NaN,
    2 ** 60,
    null,
    undefined,
    {},
    ['1'],
  ];
  for (const value of refused) {
    it(`rejects ${JSON.stringify(value)?.slice(0, 20)} and names the allowed values`, () => {
      const parsed = parseQuantity(value);
      assert.match('error' in parsed ? parsed.error : 'accepted', /allowed are/);
    });
  }
});

describe('compareQuantities', () => {
  const pairs: [string, string, number][] = [
    ['1', '1000m', 0],
    ['1Gi', '1G', 1],
    ['1024Mi', '1Gi', 0],
    ['-1', '1n', -1],
    ['0.1', '100m', 0],
    ['1e3', '1k', 0],
    ['9007199254740993', '9007199254740992', 1],
  ];
  for (const [a, b, order] of pairs) {
    it(`${a} ${['<', '=', '>'][order + 1]} ${b}`, () => {
      assert.equal(compareQuantities(read(a), read(b)), order);
      assert.equal(compareQuantities(read(b), read(a)), 0 - order);
    });
  }
});
