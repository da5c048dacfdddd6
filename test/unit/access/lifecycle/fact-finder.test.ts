import assert from 'node:assert/strict';
import { FactFinder } from '../../../../src/access/lifecycle/fact-finder.ts';
import type { Facts } from '../../../../src/access/lifecycle/facts.ts';
import { Memories } from '../../../../src/access/lifecycle/memory.ts';
import type { Grant } from '../../../../src/api/access/grant.ts';
import { accessConfig, grantOf } from '../../../support/access-objects.ts';
import { requestView } from '../../../support/request-views.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

const { signal } = new AbortController();
const requester = { username: 'alice', uid: '', groups: ['devs'], time: '' };
const waiting = requestView({ spec: { templateName: 'shell', requester } });
const open = requestView({ ...waiting, grant: grantOf() as unknown as Grant });

describe('whether the requester holds the permissions of the template', () => {
  /** Each look: the generation of the template, and whether the API server says so. */
  const cases: [what: string, request: typeof open, looks: [number, boolean][], asks: number, found: boolean[]][] = [
    [
      'once for open access',
      open,
      [
        [4, true],
        [4, false],
      ],
      1,
      [true, true],
    ],
    [
      'again after each edit',
      open,
      [
        [4, true],
        [5, false],
      ],
      2,
      [true, false],
    ],
    [
      'again after a no',
      open,
      [
        [4, false],
        [4, true],
      ],
      2,
      [false, true],
    ],
    [
      'each time for a decision',
      waiting,
      [
        [4, true],
        [4, false],
      ],
      2,
      [true, false],
    ],
  ];
  for (const [what, request, looks, asks, expected] of cases) {
    it(`is asked ${what}`, async () => {
      let held = false;
      let asked = 0;
      const isAllowed = () => {
        asked += 1;
        return Promise.resolve(held);
      };
      const memories = new Memories(new SimulatedClock());
      const deps = { kind: { templateKind: 'ExecAccessTemplate' }, client: { isAllowed }, memories };
      const finder = new FactFinder(deps as unknown as ConstructorParameters<typeof FactFinder>[0]);
      const found: unknown[] = [];
      for (const [generation, holds] of looks) {
        held = holds;
        const facts = { template: { name: 'shell', generation, spec: { accessConfig } } } as unknown as Facts;
        found.push(await finder.find({ do: 'look', at: 'held' }, request, facts, signal));
      }
      assert.deepEqual(
        found,
        expected.map((one) => ({ held: one })),
      );
      assert.equal(asked, asks);
    });
  }
});
