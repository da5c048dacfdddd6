import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiAnswer } from '../../../sandbox/api-call.ts';
import { until } from '../../../sandbox/wait.ts';
import { execRequest, podRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { orphansIn, requestsIn } from '../../support/orphans.ts';
import { chooseSeed, seededRandom } from '../../support/random.ts';
import { RequestWitness } from '../../support/request-witness.ts';

const kills = 50;
const longestDelayMs = 150;
/** Most grants expire while the server is killed repeatedly; some last longer. */
const durations = ['1s', '2s', '3s', '4s', '10m'];

describe('a server that is killed at random', () => {
  let stage: AccessStage;
  let witness: RequestWitness;
  const seed = chooseSeed();

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    witness = RequestWitness.of(stage.plane, stage.namespace);
  });

  after(async () => {
    witness?.close();
    await stage?.close();
  });

  it(`leaves no orphan and no stuck request, and changes no decision, after ${kills} kills (DRAWBRIDGE_SEED=${seed})`, async function () {
    this.timeout(300_000);
    const random = seededRandom(seed);
    const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
    const underway: Promise<ApiAnswer>[] = [];

    for (let kill = 0; kill < kills; kill += 1) {
      await stage.createOk(stage.alice, podRequest(`crash-${kill}`, { duration: pick(durations) }));
      // If the kill comes before the webhooks have answered, the API server rejects the request.
      underway.push(stage.create(stage.alice, execRequest(`crash-${kill}`, { duration: pick(durations) })));
      await sleep(random() * longestDelayMs);
      await stage.server.kill();
      await stage.start({ installation: stage.server.installation });
    }
    const admitted = kills + (await Promise.all(underway)).filter(({ status }) => status === 201).length;

    const living = await until(
      'every request to have ended or to be Ready',
      async () => {
        const requests = await requestsIn(stage.plane, stage.namespace);
        const settled = ({ spec, status }: (typeof requests)[number]): boolean =>
          spec?.['duration'] === '10m' && status?.ready === true;
        return requests.every(settled) && requests;
      },
      { timeoutMs: 60_000 },
    );
    console.log(`      ${admitted} requests admitted, ${living.length} of them Ready now, the others have ended`);
    assert.deepEqual(await orphansIn(stage.plane, stage.namespace), []);
    assert.deepEqual(witness.changedDecisions(), []);
    for (const request of living) {
      const kinds = (await stage.children(request.metadata.uid)).map(({ kind }) => kind);
      const expected = request.kind === 'PodAccessRequest' ? ['Pod', 'Role', 'RoleBinding'] : ['Role', 'RoleBinding'];
      assert.deepEqual(kinds, expected, request.metadata.name);
    }

    await stage.kubectl('delete', 'podaccessrequests,execaccessrequests', '--all', '--timeout=60s');
    assert.deepEqual(await orphansIn(stage.plane, stage.namespace), []);
  });
});
