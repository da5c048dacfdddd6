import assert from 'node:assert/strict';
import type { ComponentStatus } from '../../../../src/api/inventory/cluster-inventory.ts';
import { mayRun } from '../../../../src/inventory/core/facts.ts';
import type { StoredRecord } from '../../../../src/inventory/core/run-record.ts';
import type { KeyStatus } from '../../../../src/inventory/core/status.ts';
import type { Entry } from '../../../../src/inventory/entry.ts';
import {
  componentStatuses,
  EntryStatus,
  type KeyStatuses,
  livelockOf,
  readyOf,
} from '../../../../src/inventory/manager/entry-status.ts';
import { Memories } from '../../../../src/inventory/manager/memories.ts';
import type { RegistrationLister } from '../../../../src/inventory/manager/registrations.ts';
import type { RunStore } from '../../../../src/inventory/ports.ts';
import type { Registration } from '../../../../src/inventory/registration.ts';
import { MemoryAccess } from '../../../support/inventory/memory-access.ts';
import { factsOf } from '../../../support/inventory/plan-facts.ts';
import { registrationOf } from '../../../support/inventory/registrations.ts';
import { pluck } from '../../../support/pluck.ts';

const row = (state: KeyStatus['state'], rest: Partial<KeyStatus> = {}): KeyStatus => ({
  state,
  reason: undefined,
  message: undefined,
  missing: [],
  observedInputs: undefined,
  livelock: undefined,
  ...rest,
});
const rows = (of: Readonly<Record<string, KeyStatus>>): KeyStatuses => new Map(Object.entries(of));
const waiting = row('NotReady', { missing: [{ path: '/status/outputs/network/vnetName', want: 'present' }] });
const entry = { bytes: 1000, deleting: false, suspended: false };
const deleting = { ...entry, deleting: true };

describe('the condition Ready', () => {
  it('names as many components as fit', () => {
    const many = Array.from({ length: 64 }, (_, i) => [`c${i}`, row('Failed', { message: 'x'.repeat(1024) })] as const);
    const { message } = readyOf(rows(Object.fromEntries(many)), entry);
    assert.ok(message.length < 5000, `${message.length} characters`);
    assert.match(message, /^c0: Failed: x+; .*; and \d+ more$/);
  });

  for (const [what, given, status, reason, message] of [
    ['every component is Done', { a: row('Done'), b: row('Done') }, 'True', 'Done', ''],
    ['others do not apply', { a: row('Done'), b: row('NotApplicable') }, 'True', 'Done', ''],
    [
      'none applies',
      { b: row('NotApplicable', { reason: 'NotApplicable', message: 'runs only in mode byoc' }) },
      'False',
      'NoComponents',
      'no component runs: b (runs only in mode byoc)',
    ],
    [
      'none is registered',
      {},
      'False',
      'NoComponents',
      'no component is registered; create a ComponentReconciler for each component',
    ],
    ['one waits', { a: row('Done'), c: waiting }, 'False', 'NotReady', 'c: waits for /status/outputs/network/vnetName'],
    [
      'several are open: the worst first',
      { a: row('Progressing', { reason: 'Pending' }), b: waiting, c: row('Failed', { message: 'no such region' }) },
      'False',
      'Failed',
      'c: Failed: no such region; b: waits for /status/outputs/network/vnetName; a: Progressing (Pending): the first run is due or in progress',
    ],
    [
      'one waits for an output to be absent that was absent',
      {
        a: row('NotReady', {
          reason: 'MissingAlreadySatisfied',
          missing: [{ path: '/status/outputs/cluster', want: 'absent' }],
        }),
      },
      'False',
      'NotReady',
      'a: waits for /status/outputs/cluster to be absent, but this was already so when the component was called',
    ],
    [
      'the inputs of one changed',
      { a: row('Progressing', { reason: 'InputsChanged' }) },
      'False',
      'Progressing',
      'a: Progressing (InputsChanged): inputs or registration changed; a run is due or in progress',
    ],
    [
      'others are named and not registered',
      { a: row('Done'), b: row('NotApplicable', { reason: 'NotRegistered' }) },
      'True',
      'Done',
      'b: not registered',
    ],
    [
      'one waits, and others are named and not registered',
      { c: waiting, 'b\n': row('NotApplicable', { reason: 'NotRegistered' }) },
      'False',
      'NotReady',
      'c: waits for /status/outputs/network/vnetName; "b\\n": not registered',
    ],
    [
      'one runs asynchronously',
      { a: row('Progressing', { reason: 'Running', message: 'running since T; last outcome: Failed: no' }) },
      'False',
      'Progressing',
      'a: running since T; last outcome: Failed: no',
    ],
  ] as const) {
    it(`is ${status} when ${what}`, () => {
      assert.deepEqual(readyOf(rows(given), entry), { type: 'Ready', status, reason, message });
    });
  }

  for (const [what, given, status, reason, message] of [
    [
      'a component that is not Done',
      { a: row('Suspended', { reason: 'Suspended', message: 'last outcome: Retry: 502' }), b: row('Done') },
      'False',
      'Suspended',
      'suspended by spec.suspend: set it to false to resume; a: last outcome: Retry: 502',
    ],
    [
      'a component that still runs',
      { a: row('Progressing', { reason: 'Running', message: 'running since T' }) },
      'False',
      'Suspended',
      'suspended by spec.suspend: set it to false to resume; a: running since T',
    ],
    ['Done components', { a: row('Done') }, 'True', 'Done', 'suspended by spec.suspend: set it to false to resume'],
  ] as const) {
    it(`says that the entry is suspended, with ${what}`, () => {
      assert.deepEqual(readyOf(rows(given), { ...entry, suspended: true }), { type: 'Ready', status, reason, message });
    });
  }

  it('contains the size of an entry that is too large', () => {
    const { reason, message } = readyOf(rows({ a: row('Done') }), { ...entry, bytes: 65_537 });
    assert.equal(reason, 'TooLarge');
    assert.match(message, /the entry has 65537 bytes; at most 65536 are allowed/);
  });

  it('lists what is left of an entry that is being deleted', () => {
    const { reason, message } = readyOf(rows({ a: row('Deleting') }), deleting);
    assert.deepEqual([reason, message], ['Deleting', 'a: Deleting']);
  });

  it('names the components that wait for spec.suspend while the entry is being deleted', () => {
    const given = rows({ b: waiting, a: row('Done'), c: row('NotApplicable', { reason: 'Abandoned' }) });
    const { reason, message } = readyOf(given, { ...deleting, suspended: true });
    assert.equal(reason, 'Suspended');
    assert.equal(
      message,
      'the entry is being deleted, but spec.suspend is true: the server starts no teardown of a, b; set spec.suspend to false',
    );
  });

  for (const [what, given, suspended, text] of [
    ['none has a record', {}, true, 'no component is left to tear down'],
    ['one has a record', { a: row('Done') }, false, 'still to tear down: a'],
  ] as const) {
    it(`says what is left to tear down when ${what}`, () => {
      const { reason, message } = readyOf(rows(given), { ...deleting, suspended });
      assert.deepEqual([reason, message], ['Deleting', text]);
    });
  }

  it('names the components that do not run when none runs, first those that are missing or were abandoned', () => {
    const stopped = (reason: string, message?: string) => row('NotApplicable', { reason, message });
    const given = rows({
      a: stopped('NotApplicable', 'runs only in mode byoc'),
      b: stopped('Disabled'),
      c: stopped('Abandoned'),
      d: stopped('NotApplicable', 'its selector does not match the labels of the entry'),
      e: stopped('NotRegistered'),
    });
    assert.deepEqual(readyOf(given, entry), {
      type: 'Ready',
      status: 'False',
      reason: 'NoComponents',
      message:
        'no component runs: e (not registered), c (abandoned), d (its selector does not match the labels of the entry), b (spec.components.b.enabled is false), a (runs only in mode byoc)',
    });
  });
});

describe('the component statuses', () => {
  it('are sorted by name, keep since, and omit empty fields', () => {
    const before = componentStatuses(
      rows({ b: row('Done'), a: row('Retrying', { message: 'x'.repeat(2000) }) }),
      [],
      0,
    );
    assert.deepEqual(pluck(before, 'name'), ['a', 'b']);
    assert.deepEqual(before[1], { name: 'b', state: 'Done', since: '1970-01-01T00:00:00Z' });
    assert.equal(before[0]?.message?.length, 1024);
    const after = componentStatuses(rows({ b: row('Done', { observedInputs: 'd' }), a: row('Done') }), before, 60_000);
    assert.deepEqual([after[0]?.since, after[1]?.since], ['1970-01-01T00:01:00Z', '1970-01-01T00:00:00Z']);
  });
});

describe('the status of an entry', () => {
  /** With registered components, and with records of unregistered ones. */
  const statusesOf = (registered: number, left: number, disabled: readonly string[] = []) =>
    statusesWith(
      Array.from({ length: registered }, (_, i) => registrationOf(`c${i}`)),
      left,
      { disabled: new Set(disabled) },
    );

  function statusesWith(registrations: readonly Registration[], left: number, more: Partial<Entry>) {
    const { clock, entry: entryOf } = new MemoryAccess();
    const given = { ...entryOf(), ...more };
    const memories = new Memories();
    for (let i = 0; i < left; i += 1) memories.of({ entryUid: given.ref.uid, component: `left-${i}` });
    const status = new EntryStatus({
      registrations: {
        get: (component) => registrations.find(({ name }) => name === component),
        all: () => registrations,
        problem: () => undefined,
      } satisfies RegistrationLister,
      runs: { find: ({ component }) => (component.startsWith('left-') ? ({} as StoredRecord) : undefined) } as RunStore,
      memories: () => memories,
      facts: {
        refresh: (memory, entry = given) => {
          const registration = registrations.find(({ name }) => name === memory.key.component);
          const may = registration && mayRun(entry, registration, { refused: false, recorded: false });
          return may && { ...factsOf({ record: null, entry, registration }), memory, mayRun: may };
        },
      },
      clock,
      endpointProblem: () => undefined,
      remoteProblem: () => null,
    });
    const { components } = status.patch(given)?.status ?? {};
    return components as ComponentStatus[];
  }

  it('says whether the mode or the selector keeps a component from an entry', () => {
    const byoc = registrationOf('byoc', { modes: ['byoc'] });
    const dns = registrationOf('dns', { selects: ({ try: label }) => label === 'dns' });
    assert.deepEqual(
      statusesWith([byoc, dns], 0, { labels: { try: 'dsn' } }).map(({ state, reason, message }) => [
        state,
        reason,
        message,
      ]),
      [
        ['NotApplicable', 'NotApplicable', 'runs only in mode byoc'],
        ['NotApplicable', 'NotApplicable', 'its selector does not match the labels of the entry'],
      ],
    );
  });

  it('has each component that the entry names and no one registered, if its name is valid', () => {
    const named = ['firewall', 'dns', '', 'x'.repeat(254)];
    assert.deepEqual(
      statusesWith([registrationOf('dns')], 0, { named }).map(({ name, reason, message }) => [name, reason, message]),
      [
        ['dns', 'Pending', undefined],
        [
          'firewall',
          'NotRegistered',
          'no such component is registered; correct the name in spec.components, or register the component',
        ],
      ],
    );
    assert.equal(statusesWith([registrationOf('dns')], 0, { named, deleting: true }), undefined);
  });

  it('shows a disabled component that never ran as Disabled, not as Pending', () => {
    assert.deepEqual(
      statusesOf(2, 0, ['c0']).map(({ state, reason, message }) => [state, reason, message]),
      [
        ['NotApplicable', 'Disabled', 'spec.components.c0.enabled is false; set it to true to run the component'],
        ['Progressing', 'Pending', undefined],
      ],
    );
  });

  for (const [registered, left] of [
    [65, 0],
    [63, 1],
    [63, 2],
    [65, 1],
  ] as const) {
    it(`has at most 64 component statuses with ${registered} components and ${left} unregistered ones`, () => {
      assert.equal(statusesOf(registered, left).length, 64);
    });
  }
});

describe('the condition Livelock', () => {
  it('names the components whose inputs keep returning', () => {
    assert.equal(livelockOf(rows({ a: row('Done') })).status, 'False');
    const { status, message } = livelockOf(rows({ a: row('Done', { livelock: 'by /spec/x' }), b: row('Done') }));
    assert.deepEqual([status, message], ['True', 'a: by /spec/x']);
  });
});
