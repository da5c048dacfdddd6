import assert from 'node:assert/strict';
import type { ScriptedRequest, Verdict } from '../../../sandbox/http-script.ts';
import { until } from '../../../sandbox/wait.ts';
import { execRequest, type Manifest, podRequest, reviewed, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { orphansIn, requestsIn } from '../../support/orphans.ts';
import { sharedPlane } from '../../support/plane.ts';
import { chooseSeed, seededRandom } from '../../support/random.ts';
import { RequestWitness } from '../../support/request-witness.ts';

const seed = chooseSeed();
const each = 10;

type Fault = (random: () => number, call: ScriptedRequest) => Verdict;

const status = (code: number, reason: string, message: string): object => ({
  kind: 'Status',
  apiVersion: 'v1',
  status: 'Failure',
  code,
  reason,
  message,
});

const faults: [string, Fault][] = [
  [
    '429 with Retry-After for a fifth of the calls and 503 for a tenth',
    (random) => {
      const dice = random();
      if (dice < 0.2) {
        const body = status(429, 'TooManyRequests', 'slow down');
        return { status: 429, headers: { 'retry-after': '1' }, body };
      }
      return dice < 0.3 ? { status: 503, body: status(503, 'ServiceUnavailable', 'not now') } : 'pass';
    },
  ],
  [
    'connections cut after the API server has executed a third of the writes',
    (random, { method }) => (method !== 'GET' && random() < 0.33 ? 'cut-answer' : 'pass'),
  ],
  [
    'connections cut before or after a quarter of all calls',
    (random) => {
      const dice = random();
      if (dice < 0.25) return dice < 0.12 ? 'cut' : 'cut-answer';
      return 'pass';
    },
  ],
  [
    'conflicts on a third of the writes',
    (random, { method }) =>
      method !== 'GET' && random() < 0.33
        ? { status: 409, body: status(409, 'Conflict', 'the object has been modified') }
        : 'pass',
  ],
];

describe('an API server with faulty answers', () => {
  for (const [what, fault] of faults) {
    describe(`with ${what}`, () => {
      let stage: AccessStage;
      let witness: RequestWitness;

      before(async function () {
        this.timeout(180_000);
        const plane = await sharedPlane();
        const random = seededRandom(seed);
        let faultyNamespace = '-';
        const proxy = await plane.proxy({
          onRequest: (call) =>
            call.path.includes(`/namespaces/${faultyNamespace}/`) || call.watch ? fault(random, call) : 'pass',
        });
        stage = await AccessStage.open({ apiserver: proxy.server });
        faultyNamespace = stage.namespace;
        witness = RequestWitness.of(plane, stage.namespace);
      });

      after(async () => {
        witness?.close();
        await stage?.close();
      });

      it(`every request becomes Ready and ends, and no object remains (DRAWBRIDGE_SEED=${seed})`, async function () {
        this.timeout(240_000);
        const manifests = Array.from({ length: each }, (_, i) => [
          podRequest(`lasting-${i}`, { duration: '10m' }),
          execRequest(`lasting-${i}`, { duration: '10m' }),
          podRequest(`short-${i}`, { duration: '2s' }),
          execRequest(`short-${i}`, { duration: '2s' }),
        ]).flat();
        const asked: StoredRequest[] = [];
        const ask = async (manifest: Manifest): Promise<StoredRequest> => {
          const { status: code, body } = await reviewed(() => stage.create(stage.alice, manifest));
          assert.equal(code, 201, JSON.stringify(body));
          return body as StoredRequest;
        };
        for (let first = 0; first < manifests.length; first += 8)
          asked.push(...(await Promise.all(manifests.slice(first, first + 8).map(ask))));
        const isLasting = ({ metadata }: StoredRequest): boolean => metadata.name.startsWith('lasting');

        const unsettled = async (): Promise<StoredRequest[]> =>
          (await requestsIn(stage.plane, stage.namespace)).filter(
            (request) => !isLasting(request) || request.status?.ready !== true,
          );
        const startedMs = performance.now();
        await until('lasting grants to be Ready and short ones gone', async () => (await unsettled()).length === 0, {
          timeoutMs: 80_000,
        }).catch(async (error: Error) => {
          console.log((await stage.server.log()).split('\n').slice(-60).join('\n'));
          const left = (await unsettled()).map(
            ({ kind, metadata, status }) => `${kind} ${JSON.stringify(metadata)} ${JSON.stringify(status)}`,
          );
          throw new Error(`${error.message}; left:\n${left.join('\n')}`);
        });
        console.log(`      settled after ${Math.round(performance.now() - startedMs)} ms`);
        for (const request of asked.filter(isLasting)) {
          const kinds = (await stage.children(request.metadata.uid)).map(({ kind }) => kind);
          const expected =
            request.kind === 'PodAccessRequest' ? ['Pod', 'Role', 'RoleBinding'] : ['Role', 'RoleBinding'];
          assert.deepEqual(kinds, expected, request.metadata.name);
        }
        assert.deepEqual(await orphansIn(stage.plane, stage.namespace), []);

        await stage.kubectl('delete', 'podaccessrequests,execaccessrequests', '--all', '--timeout=90s');
        assert.deepEqual(await orphansIn(stage.plane, stage.namespace), []);
        assert.deepEqual(witness.changedDecisions(), []);
        assert.ok(stage.server.running);
      });
    });
  }
});
