import assert from 'node:assert/strict';
import type { Certified } from '../../../../src/access/policies/policy-check.ts';
import { PolicyGuard, policyRecordName } from '../../../../src/access/policies/policy-guard.ts';
import { certifyingObjects } from '../../../../src/access/policies/shape.ts';
import { readRecord, recordData } from '../../../../src/access/policies/verdict.ts';
import type { KubeObject, ObjectName, Resource } from '../../../../src/api/object.ts';
import { secrets } from '../../../../src/api/resources.ts';
import type { AuditRecord } from '../../../../src/audit/record.ts';
import { formatTime } from '../../../../src/kit/clock.ts';
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
  readonly lines: string[] = [];
  templates: KubeObject[] = [];
  journalFails = false;
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
      list: async (resource: Resource) => ({ items: this.templates.filter(({ kind }) => kind === resource.kind) }),
      create: (resource: Resource, object: KubeObject) => {
        if (resource === secrets) return write((object as { data?: unknown }).data);
        return Promise.resolve({ ...object, metadata: { creationTimestamp: formatTime(this.clock.now()) } });
      },
      mergePatch: (_: Resource, __: ObjectName, { data }: { data: unknown }) => write(data ?? {}),
      apply: () => (this.probe === 'accepted' ? Promise.resolve({}) : Promise.reject(this.probe)),
    } as unknown as Client;
    const { clock } = this;
    const journal = {
      available: true,
      append: async ({ verdict, message }: AuditRecord) => {
        if (this.journalFails) throw new Error('disk full');
        this.lines.push(`${verdict}: ${message}`);
      },
    };
    this.guard = new PolicyGuard({ client, namespace: 'drawbridge-system', clock, log: noLog, journal });
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

  certified(createdAtMs: number): Promise<Certified> {
    return this.guard.certify(createdAtMs, this.#stop.signal);
  }

  record(): void {
    const versions = certifyingManifests().map(({ metadata }) => `${metadata.uid}/${metadata.generation}`);
    const metadata = { name: policyRecordName, resourceVersion: '1' };
    this.secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata,
      data: recordData({ versions, certifies: 1, since: formatTime(this.clock.now()), first: true, unjudged: [] }),
    } as KubeObject;
  }
}

/** Its author was judged at the generation `judged`. */
const template = (uid: string, generation: number, judged: number): KubeObject =>
  ({
    apiVersion: 'crds.wizardofoz.co/v1alpha1',
    kind: 'PodAccessTemplate',
    metadata: { name: uid, uid, generation },
    status: {
      conditions: [{ type: 'AuthorHoldsRights', status: 'True', reason: 'Success', observedGeneration: judged }],
    },
  }) as KubeObject;

const changes: readonly [string, (scene: Scene) => void][] = [
  [
    'a policy is deleted',
    (scene) => {
      scene.live = [undefined, ...scene.live.slice(1)];
    },
  ],
  [
    'a binding changes, even to the right shape',
    (scene) => {
      const again = (one: KubeObject | undefined) => ({ ...one, metadata: { ...one?.metadata, generation: 3 } });
      scene.live = scene.live.map((one, index) => (index === 1 ? (again(one) as KubeObject) : one));
    },
  ],
  [
    'the record is emptied',
    (scene) => {
      scene.secret = { ...scene.secret, data: {} } as KubeObject;
    },
  ],
  [
    'the record is deleted',
    (scene) => {
      scene.secret = undefined;
    },
  ],
];

describe('the guard of the policies', () => {
  it('finds them in force at once if the record has them, and the API server refuses the probe', async () => {
    const scene = new Scene();
    scene.record();
    assert.match(String(scene.problem), /has not verified/);
    await scene.pass(0);
    assert.equal(scene.problem, undefined);
    assert.equal(scene.guard.gauge, 1);
  });

  it('records them five seconds after an installation, from when the API server refuses the probe', async () => {
    const scene = new Scene();
    scene.probe = 'accepted';
    await scene.pass(8000);
    assert.equal(scene.secret, undefined);
    scene.probe = refusal;
    await scene.pass(5900);
    assert.notEqual(scene.problem, undefined);
    await scene.pass(1200);
    assert.equal(scene.problem, undefined);
    assert.notEqual(readRecord(scene.secret), 'absent');
    assert.deepEqual(scene.lines, [], 'an installation is no gap');
  });

  it('records them 40 seconds after a gap', async () => {
    const scene = new Scene();
    scene.record();
    scene.secret = { ...scene.secret, data: {} } as KubeObject;
    await scene.pass(39_900);
    assert.match(String(scene.guard.health()), /empty or damaged/);
    await scene.pass(1200);
    assert.equal(scene.problem, undefined);
    const why = 'the record of the policies is empty or damaged';
    assert.deepEqual(scene.lines, [`unproven: ${why}`, `proven: ${why}`]);
  });

  it('waits 40 seconds without a record, too, if templates or requests exist, and writes it into the journal', async () => {
    const scene = new Scene();
    scene.templates = [template('judged', 2, 2)];
    await scene.pass(39_000);
    assert.equal(scene.secret, undefined);
    await scene.pass(3000);
    assert.equal(scene.problem, undefined);
    assert.deepEqual(
      scene.lines.map((line) => line.split(':')[0]),
      ['unproven', 'proven'],
    );
  });

  it('records no end of a gap that the audit journal does not have', async () => {
    const scene = new Scene();
    scene.record();
    scene.secret = { ...scene.secret, data: {} } as KubeObject;
    await scene.pass(39_000);
    scene.journalFails = true;
    await assert.rejects(scene.pass(3000), /disk full/);
    assert.equal(readRecord(scene.secret), 'unreadable');
    assert.equal(await scene.certified(0), 'gap');
    scene.journalFails = false;
    await scene.pass(45_000);
    assert.equal(scene.problem, undefined);
  });

  it('certifies what was created after the second in which the last gap ended', async () => {
    const scene = new Scene();
    assert.equal(await scene.certified(scene.clock.now()), 'gap', 'nothing is verified yet');
    scene.record();
    await scene.pass(0);
    const sinceMs = Math.floor(scene.clock.now() / 1000) * 1000;
    const answers = await Promise.all([-1000, 0, 1000].map((ms) => scene.certified(sinceMs + ms)));
    assert.deepEqual(answers, ['uncertified', 'uncertified', 'certified']);
  });

  describe('of a template that existed before the end of a gap', () => {
    const createdAtMs = Date.parse('2026-11-21T08:00:00Z');
    const version = (uid: string, generation: number, author?: string) => ({
      uid,
      generation,
      createdAtMs,
      spec: { author },
    });
    const versions = [version('new', 1, 'erin'), version('edited', 3, 'erin'), version('edited', 4, 'erin')];
    const answers = async (scene: Scene): Promise<Certified[]> => {
      scene.templates = [template('new', 1, 0), template('edited', 3, 2), template('judged', 3, 3)];
      await scene.pass(60_000);
      const asked = [...versions, version('judged', 3, 'erin'), version('nobody', 1)];
      return Promise.all(asked.map((one) => scene.guard.certifyVersion(one, new AbortController().signal)));
    };

    it('certifies edits after it, and what was judged before it', async () => {
      const scene = new Scene();
      scene.record();
      scene.secret = { ...scene.secret, data: {} } as KubeObject;
      assert.deepEqual(await answers(scene), ['uncertified', 'uncertified', 'certified', 'certified', 'uncertified']);
    });

    it('leaves one without an author to the reconciler if no record exists', async () => {
      const found = await answers(new Scene());
      assert.deepEqual(found, ['uncertified', 'uncertified', 'certified', 'certified', 'certified']);
    });

    it('asks to delete templates if the record would become too large', async () => {
      const scene = new Scene();
      scene.templates = Array.from({ length: 10_001 }, (_, index) => template(`t-${index}`, 2, 1));
      await scene.pass(60_000);
      assert.match(String(scene.problem), /^10001 template versions .* at most 10000 are allowed; delete templates$/);
    });
  });

  for (const [what, change] of changes) {
    it(`certifies nothing from the moment in which ${what}, before any event`, async () => {
      const scene = new Scene();
      scene.record();
      await scene.pass(0);
      change(scene);
      assert.equal(await scene.certified(scene.clock.now() + 5000), 'gap');
    });
  }

  it('certifies nothing of a gap after it, also under the next leader', async () => {
    const scene = new Scene();
    scene.record();
    await scene.pass(0);
    scene.live = scene.live.map((one) => ({ ...one, metadata: { ...one?.metadata, uid: 'new' } }) as KubeObject);
    const createdAtMs = scene.clock.now() + 10_000;
    scene.guard.changed();
    await scene.pass(60_000);
    assert.equal(scene.problem, undefined);
    assert.equal(await scene.certified(createdAtMs), 'uncertified');
    assert.equal(await scene.certified(scene.clock.now()), 'certified');
    const next = new Scene();
    Object.assign(next, { live: scene.live, secret: scene.secret });
    await next.pass(0);
    assert.equal(await next.certified(createdAtMs), 'uncertified');
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
    await scene.pass(3000);
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
