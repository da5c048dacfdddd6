import assert from 'node:assert/strict';
import type { RequestView } from '../../../../src/access/stores/access-views.ts';
import { readGrant } from '../../../../src/api/access/grant.ts';
import { formatTime } from '../../../../src/kit/clock.ts';
import { factsOf, sessionFactsOf } from '../../../../src/notify/facts/facts-of.ts';
import type { NotifiedRequest, NotifiedSession, NotifiedTemplate } from '../../../../src/notify/stores.ts';
import { conditionAt, grantUntil } from '../../../support/notify/objects.ts';
import { createdAtMs, requestView } from '../../../support/request-views.ts';

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const at = (ms: number): string => formatTime(createdAtMs + ms);

const requester = { username: 'alice', uid: '1', groups: [], time: at(0) };
const spec = { templateName: 'payments-shell', reason: 'INC-1', requester };

const request = (over: Partial<NotifiedRequest> = {}): NotifiedRequest => ({
  ...requestView({ spec }),
  kind: 'PodAccessRequest',
  lastWriteMs: createdAtMs,
  ...over,
});

type Template = Pick<NotifiedTemplate, 'labels' | 'spec'>;
const templateWith = (all: NonNullable<Template['spec']['accessConfig']['approvals']>['all']): Template => {
  const accessConfig = { approvals: { all }, defaultDuration: '1h', allow: ['logs'] };
  return { labels: {}, spec: { accessConfig } as unknown as Template['spec'] };
};
const template = templateWith([
  { name: 'peer', groups: ['devs'] },
  { name: 'security', count: 2 },
]);

const grantOf = (endMs: number, over: object = {}) => {
  const status = { grant: grantUntil({ name: 'debug', uid: 'r-1' }, createdAtMs, createdAtMs + endMs, over) };
  const read = readGrant({ status });
  assert.ok(read.ok);
  return read.value;
};
const created = (ms: number) => conditionAt('AccessResourcesCreated', 'True', createdAtMs + ms);
const approved = (ms: number) => conditionAt('AccessApproved', 'True', createdAtMs + ms);
const vote = (uid: string, over: object = {}) => ({
  uid,
  voter: 'bob',
  decision: 'Approve' as const,
  at: at(0),
  reason: 'fine',
  ...over,
});
const ended = (how: 'Denied' | 'Expired' | 'Revoked', ms: number) => ({
  at: at(ms),
  how,
  reason: 'Because',
  keptUntil: at(ms),
});
const approval = (state: NonNullable<RequestView['approval']>['state'], over: object = {}) => ({ state, ...over });
const open = { grant: grantOf(hour), conditions: [created(minute)] };
const emergency = { ...spec, emergency: true };
const asked = { ...spec, extensions: [{ by: '10m', reason: 'more' }] };

interface Row {
  readonly what: string;
  readonly view: NotifiedRequest;
  /** Of the view, after the creation of the request. */
  readonly nowMs?: number;
  readonly deletedMs?: number;
  /** `event` and milliseconds after the creation. */
  readonly facts: readonly string[];
}

const rows: readonly Row[] = [
  { what: 'a new request', view: request(), facts: ['requested 0'] },
  { what: 'a request without a requester', view: request({ spec: { templateName: 'x' } }), facts: [] },
  { what: 'an emergency that waits', view: request({ spec: emergency }), facts: [] },
  { what: 'a request of the day before', view: request(), nowMs: 24 * hour, facts: [] },
  {
    what: 'an approval',
    view: request({ approval: approval('Approved', { votes: [vote('v')] }), conditions: [approved(minute)] }),
    facts: ['requested 0', 'approved 60000'],
  },
  {
    what: 'an approval that waits for its claim',
    view: request({
      approval: approval('Claimable', { all: [{ name: 'peer', have: 1, need: 1 }], votes: [vote('v')] }),
      lastWriteMs: createdAtMs + 2 * minute,
    }),
    facts: ['requested 0', 'approved 120000'],
  },
  {
    what: 'one of two approvals',
    view: request({ approval: approval('Pending', { all: [{ name: 'peer', have: 1, need: 2 }], votes: [vote('v')] }) }),
    facts: ['requested 0'],
  },
  {
    what: 'a request that needs no approvals',
    view: request({ approval: approval('Approved'), conditions: [approved(minute)] }),
    facts: ['requested 0'],
  },
  {
    what: 'an approval by a vote that does not count',
    view: request({
      approval: approval('Approved', { votes: [vote('v', { ignored: 'SelfApproval: …' })] }),
      conditions: [approved(minute)],
    }),
    facts: ['requested 0'],
  },
  { what: 'a grant without its objects', view: request({ grant: grantOf(hour) }), facts: [] },
  { what: 'open access', view: request(open), facts: ['granted 60000'] },
  { what: 'an open emergency', view: request({ ...open, spec: emergency }), facts: ['emergency 60000'] },
  {
    what: 'access that ends in five minutes',
    view: request(open),
    nowMs: 55 * minute,
    facts: ['granted 60000', 'ending 3300000'],
  },
  {
    what: 'a fifth of short access left',
    view: request({ ...open, grant: grantOf(10 * minute) }),
    nowMs: 8 * minute,
    facts: ['granted 60000', 'ending 480000'],
  },
  {
    what: 'access that an edit of the template shortened',
    view: request({ ...open, expiresAt: at(20 * minute) }),
    nowMs: 16 * minute,
    facts: ['granted 60000', 'ending 960000'],
  },
  {
    what: 'an extension that is asked for',
    view: request({ ...open, spec: asked, lastWriteMs: createdAtMs + 3 * minute }),
    facts: ['granted 60000', 'extension.requested 180000'],
  },
  {
    what: 'a granted extension',
    view: request({
      ...open,
      spec: asked,
      lastWriteMs: createdAtMs + 4 * minute,
      extensions: [{ by: '10m', state: 'Granted', expiresAt: at(70 * minute) }],
    }),
    nowMs: 60 * minute,
    facts: ['granted 60000', 'extended 240000'],
  },
  {
    what: 'a denied extension',
    view: request({ ...open, spec: asked, extensions: [{ by: '10m', state: 'Denied' }] }),
    facts: ['granted 60000'],
  },
  { what: 'a denial', view: request({ ended: ended('Denied', minute) }), facts: ['denied 60000'] },
  { what: 'a withdrawn request', view: request({ ended: ended('Revoked', minute) }), facts: ['ended 60000'] },
  {
    what: 'ended access, with all that is moot',
    view: request({
      ...open,
      spec: asked,
      approval: approval('Approved', { votes: [vote('v')] }),
      ended: ended('Expired', hour),
    }),
    nowMs: hour,
    facts: ['granted 60000', 'ended 3600000'],
  },
  {
    what: 'a request that was deleted before its end was written',
    view: request(open),
    nowMs: 20 * minute,
    deletedMs: 19 * minute,
    facts: ['granted 60000', 'ended 1140000'],
  },
  {
    what: 'an owed review',
    view: request({
      ...open,
      spec: emergency,
      ended: ended('Expired', hour),
      approval: approval('ReviewOwed', { due: at(3 * hour) }),
    }),
    nowMs: hour,
    facts: ['emergency 60000', 'ended 3600000', 'review-owed 3600000'],
  },
  {
    what: 'an overdue review',
    view: request({
      ...open,
      spec: emergency,
      ended: ended('Expired', hour),
      approval: approval('ReviewOverdue', { due: at(3 * hour) }),
    }),
    nowMs: 3 * hour,
    facts: ['emergency 60000', 'ended 3600000', 'review-overdue 10800000'],
  },
  {
    what: 'an emergency that owes a review while it is open',
    view: request({ ...open, spec: emergency, approval: approval('ReviewOwed', { due: at(3 * hour) }) }),
    facts: ['emergency 60000'],
  },
];

const find = (view: NotifiedRequest, { nowMs = 5 * minute, deletedMs }: Partial<Row> = {}) =>
  factsOf(
    view,
    { template, ...(deletedMs === undefined ? {} : { deletedAtMs: createdAtMs + deletedMs }) },
    createdAtMs + nowMs,
  );
const only = (event: string, view: NotifiedRequest, row: Partial<Row> = {}) => {
  const fact = find(view, row).facts.find((one) => one.event === event);
  assert.ok(fact, event);
  return fact;
};

describe('the facts of a request', () => {
  for (const row of rows) {
    it(`of ${row.what}: ${row.facts.join(', ') || 'none'}`, () => {
      const { facts } = find(row.view, row);
      assert.deepEqual(
        facts.map(({ event, atMs }) => `${event} ${atMs - createdAtMs}`),
        row.facts,
      );
      assert.equal(new Set(facts.map(({ id }) => id)).size, facts.length, 'ids are unique');
      assert.deepEqual(find(structuredClone(row.view), row).facts, facts, 'and the same from a copy');
    });
  }

  it('come again when access is about to end', () => {
    assert.equal(find(request(open)).nextAtMs, createdAtMs + 55 * minute);
    assert.equal(find(request(open), { nowMs: 55 * minute }).nextAtMs, undefined);
  });

  it('of a wait say what is asked for', () => {
    const { duration, permissions, approvals, untilMs } = only('requested', request());
    assert.equal(duration, '1h');
    assert.deepEqual(permissions, ['exec', 'get pods/log']);
    assert.deepEqual(approvals, [
      { name: 'peer', have: 0, need: 1, groups: ['devs'] },
      { name: 'security', have: 0, need: 2, groups: [] },
    ]);
    assert.equal(untilMs, undefined);
  });

  it('of an emergency say which approvals it skipped', () => {
    const { approvals } = only('emergency', request({ ...open, spec: emergency }));
    assert.deepEqual(
      approvals.map(({ name, have, need }) => [name, have, need]),
      [
        ['peer', 0, 1],
        ['security', 0, 2],
      ],
    );
  });

  it('of a grant name the votes that the grant names', () => {
    const votes = [vote('v-1', { voter: 'bob' }), vote('v-2', { voter: 'carol' })];
    const view = request({
      ...open,
      grant: grantOf(hour, { votes: ['v-2'] }),
      approval: approval('Approved', { votes }),
    });
    assert.deepEqual(only('granted', view).votes, [{ voter: 'carol', decision: 'Approve', reason: 'fine' }]);
  });

  it('of a grant name the pod, its permissions, and its end', () => {
    const { pod, permissions, untilMs, duration } = only('granted', request(open));
    assert.match(pod ?? '', /-access$/);
    assert.deepEqual(permissions, ['exec']);
    assert.equal(untilMs, createdAtMs + hour);
    assert.equal(duration, undefined);
  });

  it('of a denial say whose vote it was', () => {
    const view = request({ ended: { ...ended('Denied', minute), by: 'bob', reason: 'VoteDenied' } });
    assert.deepEqual(only('denied', view).end, { how: 'Denied', code: 'VoteDenied', by: 'bob' });
  });

  it('of a deletion after the granted time say that access expired', () => {
    const end = (deletedMs: number) => only('ended', request(open), { nowMs: 2 * hour, deletedMs }).end;
    assert.deepEqual(end(hour), { how: 'Expired', code: 'Expired' });
    assert.deepEqual(end(hour - second), { how: 'Revoked', code: 'Deleted' });
  });

  it('are bounded, whatever the texts of users are', () => {
    const long = '💥'.repeat(512);
    const votes = Array.from({ length: 50 }, (_, i) => vote(`v-${i}`, { voter: long, reason: long }));
    const groups = Array.from({ length: 64 }, () => long.slice(0, 512));
    const view = request({ spec: { ...spec, reason: long }, approval: approval('Approved', { votes }) });
    const context = { template: templateWith(Array.from({ length: 4 }, () => ({ name: 'x', groups }))) };
    for (const fact of factsOf(view, context, createdAtMs).facts)
      assert.ok(Buffer.byteLength(JSON.stringify(fact)) < 64 * 1024);
  });
});

describe('the facts of a session', () => {
  const session: NotifiedSession = {
    ...{ key: 'payments/s', uid: 's-1', resourceVersion: '1', namespace: 'payments', name: 's' },
    spec: {
      ...{ user: 'alice', grant: 'g', request: { kind: 'PodAccessRequest', name: 'debug' }, pod: 'web-0' },
      ...{ stream: 'exec', tty: true, recording: 'Required', replica: 'gateway-0', startedAt: at(minute) },
    },
  };

  it('are its start, and its end when it is deleted', () => {
    const { facts } = sessionFactsOf(session, undefined, createdAtMs + hour, createdAtMs + hour);
    assert.deepEqual(
      facts.map(({ event, atMs }) => [event, atMs - createdAtMs]),
      [
        ['session.started', minute],
        ['session.ended', hour],
      ],
    );
    assert.equal(sessionFactsOf(session, undefined, undefined, createdAtMs + hour).facts.length, 1);
  });

  it('say whose request it is, if that is known', () => {
    const known = sessionFactsOf(session, { view: request(open), template }, undefined, createdAtMs + hour).facts[0];
    assert.deepEqual([known?.requester, known?.reason, known?.request.uid], ['alice', 'INC-1', 'r-1']);
    const unknown = sessionFactsOf(session, undefined, undefined, createdAtMs + hour).facts[0];
    assert.deepEqual([unknown?.requester, unknown?.request.name], ['', 'debug']);
    assert.deepEqual(unknown?.session, { name: 's', user: 'alice', stream: 'exec', recording: 'Required' });
  });
});
