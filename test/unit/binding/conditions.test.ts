import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type BindCondition, readBindConditions } from '../../../src/api/binding/condition.ts';
import { maxConditionMessage, sameConditions } from '../../../src/api/conditions.ts';
import {
  type BindConditionUpdate,
  conditionTrue,
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
): BindConditionUpdate => ({ type, status: 'False', severity, reason, message });
const unknown = (type: string, reason: string, message: string): BindConditionUpdate => ({
  type,
  status: 'Unknown',
  reason,
  message,
});

const earlier = '2026-11-21T08:00:00Z';
const nowMs = Date.parse('2026-11-21T09:30:00.987Z');
const now = '2026-11-21T09:30:00Z';

const at = (lastTransitionTime: string, update: BindConditionUpdate): BindCondition => ({
  ...update,
  lastTransitionTime,
});

describe('setting a condition of kube-bind', () => {
  const broken = fails('Connected', 'Error', 'NotFound', 'no such export');
  const old = at(earlier, broken);
  const milder: BindConditionUpdate = { ...broken, severity: 'Info' };
  const gone = { ...broken, reason: 'Gone' };
  const { message: _, ...silent } = broken;
  const connected = conditionTrue('Connected');
  const theirs = at(earlier, fails('ProviderInSync', 'Error', 'BoundSchemaMissing', 'x'));
  const cases: readonly [string, BindCondition[], BindConditionUpdate[], BindCondition[]][] = [
    ['adds a new one, in whole seconds', [], [connected], [at(now, connected)]],
    ['keeps the time of an unchanged condition', [old], [broken], [old]],
    ['sets another status', [old], [connected], [at(now, connected)]],
    ['sets the time of another severity', [old], [milder], [at(now, milder)]],
    ['sets the time of another reason', [old], [gone], [at(now, gone)]],
    ['sets the time of another message', [old], [{ ...broken, message: '' }], [at(now, silent)]],
    [
      'puts Ready first and the rest by type',
      [at(earlier, conditionTrue('b')), at(earlier, conditionTrue('Ready'))],
      [conditionTrue('a'), conditionTrue('Z')],
      [
        at(earlier, conditionTrue('Ready')),
        at(now, conditionTrue('Z')),
        at(now, conditionTrue('a')),
        at(earlier, conditionTrue('b')),
      ],
    ],
    ['keeps the conditions of other writers', [theirs], [connected], [at(now, connected), theirs]],
    ['uses the last of a type', [old], [connected, broken], [old]],
    [
      'removes reason and message from a True condition',
      [],
      [{ type: 'a', status: 'True', severity: 'Info', reason: 'b', message: 'c' }],
      [at(now, conditionTrue('a'))],
    ],
    [
      'keeps a severity only if the status is False',
      [],
      [{ type: 'a', status: 'Unknown', severity: 'Info', reason: 'b', message: 'c' }],
      [at(now, unknown('a', 'b', 'c'))],
    ],
  ];
  for (const [title, before, updates, expected] of cases) {
    it(title, () => assert.deepEqual(setConditions(before, updates, nowMs), expected));
  }

  it('truncates a message that is too long for the API, and never within a character', () => {
    const message = `${'x'.repeat(maxConditionMessage - 1)}😀`;
    const [condition] = setConditions([], [fails('a', 'Error', 'b', message)], nowMs);
    assert.ok(condition?.message);
    assert.equal([...condition.message].length, maxConditionMessage);
    // The text as the API server returns it, in JSON.
    const stored = readBindConditions(JSON.parse(JSON.stringify({ conditions: [condition] })));
    assert.deepEqual(setConditions(stored, [fails('a', 'Error', 'b', message)], nowMs + 60_000), stored);
  });
});

describe('Ready as the summary of the other conditions', () => {
  const error = fails('e', 'Error', 'E', 'an error');
  const warning = fails('w', 'Warning', 'W', 'a warning');
  const info = fails('i', 'Info', 'I', 'an info');
  const unsure = unknown('u', 'U', 'not known');
  const plain: BindConditionUpdate = { type: 'p', status: 'False', reason: 'P' };
  const ready = (update: BindConditionUpdate): BindConditionUpdate => ({ ...update, type: 'Ready' });

  const cases: readonly [string, BindConditionUpdate[], BindConditionUpdate | undefined][] = [
    ['does not exist without other conditions', [], undefined],
    ['does not depend on itself', [ready(error)], undefined],
    ['is True if all are True', [conditionTrue('a'), conditionTrue('b')], conditionTrue('Ready')],
    ['is an error before a warning', [warning, error, info], ready(error)],
    ['is a warning before an info', [info, warning, conditionTrue('a')], ready(warning)],
    ['is an info before True', [conditionTrue('a'), info], ready(info)],
    ['is True beside one Unknown', [unsure, conditionTrue('a')], conditionTrue('Ready')],
    ['is Unknown if all are Unknown', [unsure], ready(unsure)],
    ['is True beside a False of no severity', [plain, conditionTrue('a')], conditionTrue('Ready')],
    ['is False if all are False without a severity', [plain], ready(plain)],
    [
      'is the first by type of the worst',
      [
        { ...error, type: 'z' },
        { ...error, type: 'f', reason: 'F' },
      ],
      ready({ ...error, reason: 'F' }),
    ],
  ];
  for (const [title, updates, expected] of cases) {
    it(title, () => {
      const conditions = updates.map((update) => at(earlier, update));
      assert.deepEqual(summaryOf(conditions), expected && { ...expected });
      assert.deepEqual(summaryOf([...conditions].reverse()), expected && { ...expected });
    });
  }

  it('is set together with the other conditions, and kept without any', () => {
    assert.deepEqual(setConditionsAndReady([], [error], nowMs), [at(now, ready(error)), at(now, error)]);
    assert.deepEqual(setConditionsAndReady([at(earlier, ready(error))], [], nowMs), [at(earlier, ready(error))]);
  });
});

describe('a lasting state', () => {
  const update = fc.record({
    type: fc.constantFrom('Connected', 'SchemaInSync', 'SecretValid', 'Heartbeating'),
    status: fc.constantFrom<BindConditionUpdate['status']>('True', 'False', 'Unknown'),
    severity: fc.constantFrom<NonNullable<BindConditionUpdate['severity']>>('Error', 'Warning', 'Info'),
    reason: fc.constantFrom('A', 'B'),
    message: fc.string({ unit: anyCharacter, maxLength: 20 }),
  });

  it('is written once, however often it is observed', () => {
    fc.assert(
      fc.property(fc.array(update), fc.array(update), fc.nat(), (first, second, laterMs) => {
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
  it('leaves out conditions that are not valid, and duplicates of a type', () => {
    const good = { type: 'a', status: 'False', severity: 'Info', lastTransitionTime: now, reason: 'r', message: 'm' };
    const invalid = [null, 7, 'x', [], {}, { type: 'b' }, { type: 'c', status: 'Maybe' }];
    assert.deepEqual(readBindConditions({ conditions: [...invalid, good, { ...good, reason: 's' }] }), [good]);
  });

  it('keeps a condition with unknown fields, without them', () => {
    const valid = { type: 'a', status: 'True' };
    const odd = { ...valid, severity: 'Fatal', lastTransitionTime: 'soon', reason: '', message: 3, x: 1 };
    const read = [{ ...valid, lastTransitionTime: '1970-01-01T00:00:00Z' }];
    assert.deepEqual(readBindConditions({ conditions: [odd] }), read);
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
