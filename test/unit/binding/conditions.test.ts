import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type BindCondition, readBindConditions } from '../../../src/api/binding/condition.ts';
import { maxConditionMessage, sameConditions } from '../../../src/api/conditions.ts';
import {
  type BindFinding,
  holds,
  setConditions,
  setConditionsAndReady,
  summaryOf,
} from '../../../src/binding/conditions.ts';
import { anyCharacter } from '../../support/any-character.ts';

/** Any reason will do. */
const fails = (
  type: string,
  severity: NonNullable<BindCondition['severity']>,
  reason: string,
  message: string,
): BindFinding => ({ type, status: 'False', severity, reason, message });
const unknown = (type: string, reason: string, message: string): BindFinding => ({
  type,
  status: 'Unknown',
  reason,
  message,
});

const earlier = '2026-11-21T08:00:00Z';
const nowMs = Date.parse('2026-11-21T09:30:00.987Z');
const now = '2026-11-21T09:30:00Z';

const at = (lastTransitionTime: string, finding: BindFinding): BindCondition => ({ ...finding, lastTransitionTime });

describe('setting a condition of kube-bind', () => {
  const broken = fails('Connected', 'Error', 'NotFound', 'no such export');
  const cases: readonly [string, BindCondition[], BindFinding[], BindCondition[]][] = [
    ['adds a new one, in whole seconds', [], [holds('Connected')], [at(now, holds('Connected'))]],
    ['keeps the time of the same', [at(earlier, broken)], [broken], [at(earlier, broken)]],
    ['stamps another status', [at(earlier, broken)], [holds('Connected')], [at(now, holds('Connected'))]],
    [
      'stamps another severity',
      [at(earlier, broken)],
      [{ ...broken, severity: 'Info' }],
      [at(now, { ...broken, severity: 'Info' })],
    ],
    [
      'stamps another reason',
      [at(earlier, broken)],
      [{ ...broken, reason: 'Gone' }],
      [at(now, { ...broken, reason: 'Gone' })],
    ],
    [
      'stamps another message',
      [at(earlier, broken)],
      [{ ...broken, message: '' }],
      [at(now, { type: 'Connected', status: 'False', severity: 'Error', reason: 'NotFound' })],
    ],
    [
      'puts Ready first and the rest by type',
      [at(earlier, holds('b')), at(earlier, holds('Ready'))],
      [holds('a'), holds('Z')],
      [at(earlier, holds('Ready')), at(now, holds('Z')), at(now, holds('a')), at(earlier, holds('b'))],
    ],
    [
      'leaves those of others alone',
      [at(earlier, fails('ProviderInSync', 'Error', 'BoundSchemaMissing', 'x'))],
      [holds('Connected')],
      [at(now, holds('Connected')), at(earlier, fails('ProviderInSync', 'Error', 'BoundSchemaMissing', 'x'))],
    ],
    [
      'takes the last finding about a type, against what the object said',
      [at(earlier, broken)],
      [holds('Connected'), broken],
      [at(earlier, broken)],
    ],
    [
      'explains nothing that is True',
      [],
      [{ type: 'a', status: 'True', severity: 'Info', reason: 'b', message: 'c' }],
      [at(now, holds('a'))],
    ],
    [
      'gives a severity to False alone',
      [],
      [{ type: 'a', status: 'Unknown', severity: 'Info', reason: 'b', message: 'c' }],
      [at(now, unknown('a', 'b', 'c'))],
    ],
  ];
  for (const [title, before, findings, expected] of cases) {
    it(title, () => assert.deepEqual(setConditions(before, findings, nowMs), expected));
  }

  it('cuts a message where the API would refuse it, and never within a character', () => {
    const message = `${'x'.repeat(maxConditionMessage - 1)}😀`;
    const [condition] = setConditions([], [fails('a', 'Error', 'b', message)], nowMs);
    assert.ok(condition?.message);
    assert.equal([...condition.message].length, maxConditionMessage);
    // What comes back from the API server after it has been there as JSON.
    const stored = readBindConditions(JSON.parse(JSON.stringify({ conditions: [condition] })));
    assert.deepEqual(setConditions(stored, [fails('a', 'Error', 'b', message)], nowMs + 60_000), stored);
  });
});

describe('Ready as the summary of the other conditions', () => {
  const error = fails('e', 'Error', 'E', 'an error');
  const warning = fails('w', 'Warning', 'W', 'a warning');
  const info = fails('i', 'Info', 'I', 'an info');
  const unsure = unknown('u', 'U', 'not known');
  const plain: BindFinding = { type: 'p', status: 'False', reason: 'P' };
  const ready = (finding: BindFinding): BindFinding => ({ ...finding, type: 'Ready' });

  const cases: readonly [string, BindFinding[], BindFinding | undefined][] = [
    ['is not there without any other', [], undefined],
    ['is not made from itself', [ready(error)], undefined],
    ['is True when all are', [holds('a'), holds('b')], holds('Ready')],
    ['is an error before a warning', [warning, error, info], ready(error)],
    ['is a warning before an info', [info, warning, holds('a')], ready(warning)],
    ['is an info before True', [holds('a'), info], ready(info)],
    ['is True beside one Unknown', [unsure, holds('a')], holds('Ready')],
    ['is Unknown when all are', [unsure], ready(unsure)],
    ['is True beside a False of no severity', [plain, holds('a')], holds('Ready')],
    ['is False when all are, without a severity', [plain], ready(plain)],
    [
      'is the first by type of the worst',
      [
        { ...error, type: 'z' },
        { ...error, type: 'f', reason: 'F' },
      ],
      ready({ ...error, reason: 'F' }),
    ],
  ];
  for (const [title, findings, expected] of cases) {
    it(title, () => {
      const conditions = findings.map((finding) => at(earlier, finding));
      assert.deepEqual(summaryOf(conditions), expected && { ...expected });
      assert.deepEqual(summaryOf([...conditions].reverse()), expected && { ...expected });
    });
  }

  it('is set together with the rest, and left alone when there is no rest', () => {
    assert.deepEqual(setConditionsAndReady([], [error], nowMs), [at(now, ready(error)), at(now, error)]);
    assert.deepEqual(setConditionsAndReady([at(earlier, ready(error))], [], nowMs), [at(earlier, ready(error))]);
  });
});

describe('a lasting state', () => {
  const finding = fc.record({
    type: fc.constantFrom('Connected', 'SchemaInSync', 'SecretValid', 'Heartbeating'),
    status: fc.constantFrom<BindFinding['status']>('True', 'False', 'Unknown'),
    severity: fc.constantFrom<NonNullable<BindFinding['severity']>>('Error', 'Warning', 'Info'),
    reason: fc.constantFrom('A', 'B'),
    message: fc.string({ unit: anyCharacter, maxLength: 20 }),
  });

  it('is written once, however often and whenever it is found again', () => {
    fc.assert(
      fc.property(fc.array(finding), fc.array(finding), fc.nat(), (first, second, laterMs) => {
        const before = setConditionsAndReady([], first, nowMs);
        const once = setConditionsAndReady(before, second, nowMs + 1);
        const stored = readBindConditions(JSON.parse(Buffer.from(JSON.stringify({ conditions: once })).toString()));
        const again = setConditionsAndReady(stored, second, nowMs + 1 + laterMs);
        assert.deepEqual(again, stored);
        assert.ok(sameConditions(stored, again));
      }),
      { seed: 1 },
    );
  });
});

describe('reading conditions from anywhere', () => {
  it('leaves out what makes no sense and second ones of a type', () => {
    const good = { type: 'a', status: 'False', severity: 'Info', lastTransitionTime: now, reason: 'r', message: 'm' };
    const conditions = [
      null,
      7,
      'x',
      [],
      {},
      { type: 'b' },
      { type: 'c', status: 'Maybe' },
      good,
      { ...good, reason: 's' },
    ];
    assert.deepEqual(readBindConditions({ conditions }), [good]);
  });

  it('keeps one with fields that nobody understands, without them', () => {
    const odd = {
      type: 'a',
      status: 'True',
      severity: 'Fatal',
      lastTransitionTime: 'soon',
      reason: '',
      message: 3,
      x: 1,
    };
    assert.deepEqual(readBindConditions({ conditions: [odd] }), [
      { type: 'a', status: 'True', lastTransitionTime: '1970-01-01T00:00:00Z' },
    ]);
  });

  it('never throws', () => {
    fc.assert(
      fc.property(fc.anything(), (status) => {
        readBindConditions(status);
        readBindConditions({ conditions: status });
        readBindConditions({ conditions: [status] });
      }),
      { seed: 2 },
    );
  });
});
