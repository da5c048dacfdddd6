import assert from 'node:assert/strict';
import { PolicyGuard, policyRecordName } from '../../../../src/access/policies/policy-guard.ts';
import { certifyingObjects } from '../../../../src/access/policies/shape.ts';
import { readRecord, recordData } from '../../../../src/access/policies/verdict.ts';
import type { KubeObject, ObjectName, Resource } from '../../../../src/api/object.ts';
import type { Client } from '../../../../src/kube/client.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { noLog } from '../../../../src/observe/log.ts';
import { certifyingManifests } from '../../../support/certifying-objects.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

const refusal = new ApiError(403, 'Forbidden', 'refused', undefined, [
  {
    reason: '',
    message:
      "ValidatingAdmissionPolicy 'drawbridge-access' with binding 'drawbridge-access' denied request: ProbeOnly: …",
  },
]);

/** One leader, the four objects, and its record. */
class Scene {
  readonly clock = new SimulatedClock();
  live: (KubeObject | undefined)[] = certifyingManifests();
  secret: KubeObject | undefined;
  probe: ApiError | 'accepted' = refusal;
  readonly guard: PolicyGuard;
  readonly #stop = new AbortController();

  constructor() {
    const get = (resource: Resource, { name }: ObjectName): Promise<KubeObject> => {
      const index = certifyingObjects.findIndex((one) => one.name === name && one.resource === resource);
      const found = index === -1 ? this.secret : this.live[index];
      return found ? Promise.resolve(found) : Promise.reject(new ApiError(404, 'NotFound', `no ${name}`));
    };
    const write = async (data: unknown): Promise<KubeObject> => {
      const metadata = { name: policyRecordName, resourceVersion: '1' };
      this.secret = { apiVersion: 'v1', kind: 'Secret', metadata, data } as KubeObject;
      return this.secret;
    };
    const client = {
      get,
      create: (_: Resource, object: KubeObject) => write((object as { data?: unknown }).data),
      mergePatch: (_: Resource, __: ObjectName, { data }: { data: unknown }) => write(data ?? {}),
      apply: () => (this.probe === 'accepted' ? Promise.resolve({}) : Promise.reject(this.probe)),
    } as unknown as Client;
    const { clock } = this;
    this.guard = new PolicyGuard({ client, namespace: 'drawbridge-system', clock, log: noLog });
    void this.guard.term.start(() => undefined, this.#stop.signal);
  }

  get problem(): unknown {
    return this.guard.health();
  }

  /** Reconciles for `ms`, as the controller would. */
  async pass(ms: number): Promise<void> {
    const endMs = this.clock.monotonic() + ms;
    for (;;) {
      const result = await this.guard.reconcile('policies', this.#stop.signal);
      const delayMs = result.kind === 'after' ? result.delayMs : Number.POSITIVE_INFINITY;
      const leftMs = endMs - this.clock.monotonic();
      await this.clock.advance(Math.min(delayMs, leftMs));
      if (delayMs >= leftMs) return;
    }
  }

  record(): void {
    const versions = certifyingManifests().map(({ metadata }) => `${metadata.uid}/${metadata.generation}`);
    const metadata = { name: policyRecordName, resourceVersion: '1' };
    this.secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata,
      data: recordData({ versions, certifies: 1 }),
    } as KubeObject;
  }
}

describe('the guard of the policies', () => {
  it('finds them in force at once if the record has them, and the API server refuses the probe', async () => {
    const scene = new Scene();
    scene.record();
    assert.match(String(scene.problem), /has not verified/);
    await scene.pass(0);
    assert.equal(scene.problem, undefined);
    assert.equal(scene.guard.gauge, 1);
  });

  it('records them at once if nothing was recorded yet, and the API server refuses the probe', async () => {
    const scene = new Scene();
    scene.probe = 'accepted';
    await scene.pass(3000);
    assert.equal(scene.secret, undefined);
    scene.probe = refusal;
    await scene.pass(1000);
    assert.equal(scene.problem, undefined);
    assert.notEqual(readRecord(scene.secret), 'absent');
  });

  it('records them 40 seconds after a gap', async () => {
    const scene = new Scene();
    scene.record();
    scene.secret = { ...scene.secret, data: {} } as KubeObject;
    await scene.pass(39_900);
    assert.match(String(scene.guard.health()), /empty or damaged/);
    await scene.pass(200);
    assert.equal(scene.problem, undefined);
  });

  it('waits again after each change in a gap', async () => {
    const scene = new Scene();
    scene.record();
    await scene.pass(0);
    const [policy, ...others] = scene.live;
    scene.live = [undefined, ...others];
    await scene.pass(60_000);
    assert.match(String(scene.guard.health()), /drawbridge-access does not exist/);
    assert.equal(scene.guard.gauge, 0);
    scene.live = [
      { ...policy, metadata: { name: 'drawbridge-access', uid: 'b', generation: 1 } } as KubeObject,
      ...others,
    ];
    await scene.pass(39_000);
    scene.live = [
      { ...policy, metadata: { name: 'drawbridge-access', uid: 'c', generation: 1 } } as KubeObject,
      ...others,
    ];
    await scene.pass(39_000);
    assert.match(String(scene.guard.health()), /replaced/);
    await scene.pass(2000);
    assert.equal(scene.problem, undefined);
  });

  it('empties the record if the API server accepts the probe', async () => {
    const scene = new Scene();
    scene.record();
    scene.probe = 'accepted';
    await scene.pass(0);
    assert.match(String(scene.guard.health()), /admission plugin/);
    assert.equal(readRecord(scene.secret), 'unreadable');
    scene.probe = refusal;
    await scene.pass(39_000);
    assert.notEqual(scene.problem, undefined);
    await scene.pass(3000);
    assert.equal(scene.problem, undefined);
  });

  it('waits for an answer to the probe before it relies on them, and only warns later', async () => {
    const scene = new Scene();
    scene.record();
    scene.probe = new ApiError(403, 'Forbidden', 'no permission');
    await scene.pass(5000);
    assert.match(String(scene.guard.health()), /nothing proves/);
    scene.probe = refusal;
    await scene.pass(2000);
    assert.equal(scene.problem, undefined);
    scene.probe = new ApiError(503, '', 'busy');
    scene.guard.changed();
    await scene.pass(5000);
    assert.match((scene.guard.health() as { warning: string }).warning, /nothing proves/);
    assert.equal(scene.guard.gauge, 1);
  });
});
