import assert from 'node:assert/strict';
import { Extender } from '../../../../src/access/lifecycle/extender.ts';
import type { ExtensionStep } from '../../../../src/access/lifecycle/facts.ts';
import { Memories } from '../../../../src/access/lifecycle/memory.ts';
import type { Certified } from '../../../../src/access/policies/policy-check.ts';
import type { Grant } from '../../../../src/api/access/grant.ts';
import { grantOf } from '../../../support/access-objects.ts';
import { createdAtMs, requestView } from '../../../support/request-views.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

const { signal } = new AbortController();
const minute = 60_000;
const endMs = createdAtMs + 30 * minute;
const request = requestView({ grant: grantOf() as unknown as Grant });
const access = { startMs: createdAtMs, endMs, decided: 0, granted: 0, emergency: false, podEndMs: undefined };
const to = { state: 'Granted', endMs: endMs + 5 * minute, votes: [] } as const;
const step: ExtensionStep = { do: 'extend', asked: { by: '5m' }, access, to, untilMs: undefined };

/** Decides the extension at `nowMs`. Returns what it did, with the error if it failed. */
async function decided(nowMs: number, proof: Certified): Promise<string[]> {
  const did: string[] = [];
  const clock = new SimulatedClock();
  clock.setWall(createdAtMs);
  const deps = {
    policies: { certify: async () => proof },
    reporter: {
      // The journal can take until the end of access.
      journalExtension: async () => {
        did.push('journal');
        clock.setWall(nowMs);
      },
      extended: () => did.push('report'),
      extensionRefused: () => did.push('refuse'),
    },
    status: {
      show: async (_: unknown, { extensions }: { extensions: { state: string }[] }) => {
        did.push(`show ${extensions.map(({ state }) => state)}`);
        return request;
      },
    },
    memories: new Memories(clock),
    clock,
  };
  const extender = new Extender(deps as unknown as ConstructorParameters<typeof Extender>[0]);
  await extender.extend(request, step, signal).catch(({ code }) => did.push(code));
  return did;
}

describe('the grant of an extension', () => {
  const cases: [what: string, nowMs: number, proof: Certified, expected: string[]][] = [
    ['is shown and reported before the end of access', endMs - 1, 'certified', ['journal', 'show Granted', 'report']],
    ['is not shown at the end of access', endMs, 'certified', ['journal']],
    ['is not shown after the end of access', endMs + 1, 'certified', ['journal']],
    ['fails in a gap of the policies', createdAtMs, 'gap', ['PoliciesMissing']],
    ['becomes a refusal without a certificate', createdAtMs, 'uncertified', ['show Denied', 'refuse']],
  ];
  for (const [what, nowMs, proof, expected] of cases)
    it(what, async () => assert.deepEqual(await decided(nowMs, proof), expected));
});
