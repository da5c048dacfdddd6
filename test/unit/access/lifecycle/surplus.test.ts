import assert from 'node:assert/strict';
import { History } from '../../../../src/access/lifecycle/history.ts';
import type { RequestView } from '../../../../src/access/stores/access-views.ts';
import { formatTime } from '../../../../src/kit/clock.ts';

const nowMs = Date.parse('2026-11-21T09:00:00Z');
const hourMs = 3_600_000;

/** Ended requests of one requester, the oldest first. They go at `untilMs`. */
const ended = (username: string, count: number, untilMs = nowMs + hourMs): RequestView[] =>
  Array.from({ length: count }, (_, index) => {
    const endedAt = { at: formatTime(nowMs - (count - index) * 1000), keptUntil: formatTime(untilMs) };
    return { uid: `${username}-${index}`, namespace: 'payments', spec: { requester: { username } }, ended: endedAt };
  }) as unknown as RequestView[];

function surplusOf(requests: readonly RequestView[], isRemoved: (request: RequestView) => boolean): string[] {
  const byIndex = (_: unknown, value: string): RequestView[] =>
    requests.filter(({ namespace, spec }) => value === namespace || value === spec.requester?.username);
  const deps = { kind: { requests: { byIndex } }, clock: { now: () => nowMs } };
  const history = new History(deps as unknown as ConstructorParameters<typeof History>[0]);
  return history.surplus(requests[0] as RequestView, isRemoved).map(({ uid }) => uid);
}

describe('the surplus of ended requests', () => {
  const cases: [string, RequestView[], string[], string?][] = [
    ['is empty at 50 of a requester', ended('alice', 50), []],
    ['is the oldest of those of a requester beyond 50', ended('alice', 52), ['alice-0', 'alice-1']],
    ['ignores requests whose time to go has come', [...ended('bob', 5), ...ended('alice', 1100, nowMs)], []],
    ['ignores requests that are removed', [...ended('bob', 5), ...ended('alice', 1100)], [], 'alice'],
    ['counts requests that go a second later', ended('alice', 51, nowMs + 1000), ['alice-0']],
  ];
  for (const [title, requests, expected, removed] of cases) {
    it(title, () => {
      assert.deepEqual(
        surplusOf(requests, ({ spec }) => spec.requester?.username === removed),
        expected,
      );
    });
  }
});
