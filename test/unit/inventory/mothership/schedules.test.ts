import assert from 'node:assert/strict';
import type { ReconcileRequest } from '../../../../src/api/inventory/contract/request.ts';
import { digestInputs } from '../../../../src/inventory/core/digest.ts';
import type { RunRecord } from '../../../../src/inventory/core/run-record.ts';
import type { EntryContent } from '../../../../src/inventory/entry.ts';
import { type ComponentKey, readRunId } from '../../../../src/inventory/key.ts';
import type { Reply } from '../../../../src/inventory/ports/component-client.ts';
import type { Registration } from '../../../../src/inventory/registration.ts';
import { sleep } from '../../../../src/kit/clock.ts';
import { valueAt } from '../../../../src/kit/json-pointer.ts';
import { ApiError, TransportError } from '../../../../src/kube/errors.ts';
import {
  answer,
  type Behaviour,
  done,
  MemoryMothership,
  notReady,
} from '../../../support/inventory/memory-mothership.ts';
import { MemoryRegistrations } from '../../../support/inventory/memory-registrations.ts';
import { MemoryInventory } from '../../../support/inventory/memory-stores.ts';
import { chooseSeed, seededRandom } from '../../../support/random.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

const schedules = Number(process.env['RUNS'] ?? 200);
const seed = chooseSeed(20261121);

const fast = { intervalSeconds: 60, retry: { baseSeconds: 1, capSeconds: 5 }, timeoutSeconds: 5, leaseSeconds: 5 };
const registered = [
  { name: 'network', ...fast },
  { name: 'cluster', reads: ['/status/outputs/network/vnet'], ...fast },
  { name: 'kubeconfig', reads: ['/status/outputs/cluster/endpoint'], writes: ['/status/outputs/access'], ...fast },
];

const vnetOf = (content: EntryContent | undefined): string =>
  `v-${valueAt(content, '/spec/components/network/config/size') ?? 0}`;

/** One history: a mothership or two that crash, an API server that fails, a watch that stands still, components that misbehave. */
class History {
  readonly clock = new SimulatedClock();
  readonly inventory = new MemoryInventory();
  readonly registrations = new MemoryRegistrations(this.clock, registered);
  readonly random: () => number;
  readonly ships: MemoryMothership[] = [];
  readonly called = new Map<string, number>();
  readonly problems: string[] = [];
  calm = false;
  #names = 0;

  constructor(random: () => number) {
    this.random = random;
    this.inventory.fault = (operation, when) => {
      if (this.calm || this.random() > 0.05) return undefined;
      if (operation === 'run.swap' && when === 'after') return new TransportError('cut', undefined, false);
      if (when === 'after') return undefined;
      return this.random() < 0.5 ? new ApiError(500, '', 'away') : new TransportError('refused', undefined, true);
    };
  }

  chance = (share: number): boolean => !this.calm && this.random() < share;

  start(): MemoryMothership {
    this.#names += 1;
    const { clock, inventory, registrations, random } = this;
    const name = `m${this.#names}`;
    const behave =
      (work: (request: ReconcileRequest) => Reply): Behaviour =>
      (request, signal) =>
        this.#call(ship, work, request, signal);
    const outputs = (request: ReconcileRequest) => this.#entryOf(request)?.content;
    const ship = new MemoryMothership({
      clock,
      inventory,
      registrations,
      random,
      name,
      components: {
        network: behave((request) => {
          return done({ network: { vnet: vnetOf(outputs(request)) } });
        }),
        cluster: behave((request) => {
          const { vnet } = (outputs(request)?.status.outputs['network'] ?? {}) as { vnet?: string };
          return vnet === undefined
            ? notReady('/status/outputs/network/vnet')
            : done({ cluster: { endpoint: `e-${vnet}` } });
        }),
        kubeconfig: behave((request) => {
          const { endpoint } = (outputs(request)?.status.outputs['cluster'] ?? {}) as { endpoint?: string };
          return endpoint === undefined
            ? notReady('/status/outputs/cluster/endpoint')
            : done({ access: { for: endpoint } });
        }),
      },
    });
    this.ships.push(ship);
    return ship.start();
  }

  #entryOf({ run }: ReconcileRequest) {
    const uid = readRunId(run.id)?.entryUid;
    return [...Array(3).keys()]
      .map((i) => this.inventory.entry({ name: `e${i}` }))
      .find((entry) => entry?.ref.uid === uid);
  }

  async #call(
    ship: MemoryMothership,
    work: (request: ReconcileRequest) => Reply,
    request: ReconcileRequest,
    signal: AbortSignal,
  ): Promise<Reply> {
    const { id, seq } = request.run;
    const key = readRunId(id);
    if (!key) throw new Error(id);
    this.called.set(id, (this.called.get(id) ?? 0) + 1);
    const record = this.inventory.record(key)?.record;
    const token = request.auth.token.replace('token ', '');
    // Nothing is called before its start is stored; whoever is late finds that out by the number.
    if (!record || record.seq < seq) this.problems.push(`${id} was called before it was stored`);
    else if (record.seq === seq && record.phase === 'Running' && record.credentialId !== token) {
      this.problems.push(`${id} was called with ${token}, stored is ${record.credentialId}`);
    }
    if (this.chance(0.1)) return { kind: 'notAccepted', code: 'Busy', message: '' };
    await sleep(this.clock, this.calm ? 20 : this.random() * 2000, signal);
    if (this.chance(0.1)) return answer({ outcome: 'Retry' });
    if (this.chance(0.1)) return { kind: 'broken', code: 'Timeout', message: '' };
    if (this.chance(0.05)) throw new Error('a bug in the client');
    const result = request.operation === 'delete' ? answer({ outcome: 'Deleted' }) : work(request);
    if (!this.chance(0.2)) return result;
    void this.#report(ship, key, token, result);
    return { kind: 'accepted', leaseMs: this.random() < 0.5 ? undefined : 3000 };
  }

  /** Late, twice, or never; to whoever leads then. */
  async #report(first: MemoryMothership, run: NonNullable<ReturnType<typeof readRunId>>, token: string, result: Reply) {
    if (result.kind !== 'outcome' || this.chance(0.2)) return;
    const id = `${run.entryUid}.${run.component}.${run.seq}`;
    const body = { run: id, ...result.outcome };
    for (let i = 0; i < 2; i++) {
      await sleep(this.clock, this.random() * 6000);
      const ship = this.ships.at(-1) ?? first;
      const said = await ship.mothership.reports.report(run, token, body);
      if (said.status === 200 && i > 0) {
        const foreign = await ship.mothership.reports.report(run, 'forged', body);
        if (foreign.status === 200) this.problems.push(`${id}: a report by a forged credential was taken`);
      }
    }
  }

  async act(): Promise<void> {
    const { random, inventory, ships } = this;
    const ship = ships[Math.floor(random() * ships.length)];
    const name = `e${Math.floor(random() * 3)}`;
    const what = random();
    if (what < 0.3) {
      if (inventory.entry({ name })) {
        inventory.edit({ name }, ({ spec }) => {
          spec.components = { network: { enabled: true, config: { size: Math.floor(random() * 1000) } } };
        });
      }
    } else if (what < 0.4) ship?.stores.pause();
    else if (what < 0.55) ship?.stores.resume();
    else if (what < 0.65) ship?.stores.relist();
    else if (what < 0.75) {
      // It crashes, and somebody takes over; sometimes before it knows that it has lost the lease.
      if (ships.length < 2 && random() < 0.5) this.start();
      else {
        const gone = ships.shift();
        await gone?.stop();
        if (ships.length === 0) this.start();
      }
    } else if (what < 0.8) this.clock.setWall(this.clock.now() + (random() - 0.5) * 20_000);
    else if (what < 0.9 && inventory.entry({ name })) {
      inventory.edit({ name }, ({ spec }) => {
        spec.suspend = random() < 0.5;
      });
    }
    await this.clock.advance(random() * 1500);
  }

  async settle(): Promise<void> {
    this.calm = true;
    while (this.ships.length > 1) await this.ships.shift()?.stop();
    this.ships[0]?.stores.relist();
    for (let i = 0; i < 3; i++) {
      if (this.inventory.entry({ name: `e${i}` })) {
        this.inventory.edit({ name: `e${i}` }, ({ spec }) => {
          spec.suspend = false;
        });
      }
    }
    await this.clock.advance(40_000);
  }

  /** What has to be true of every entry in the end. */
  check(): void {
    assert.deepEqual(this.problems, []);
    for (const [id, times] of this.called) assert.equal(times, 1, `${id} was called ${times} times`);
    for (let i = 0; i < 3; i++) {
      const entry = this.inventory.entry({ name: `e${i}` });
      assert.ok(entry);
      const { outputs } = entry.content.status;
      const vnet = vnetOf(entry.content);
      const wanted = { network: { vnet }, cluster: { endpoint: `e-${vnet}` }, access: { for: `e-${vnet}` } };
      assert.deepEqual(outputs, wanted);
      const ready = entry.conditions.find(({ type }) => type === 'Ready');
      assert.equal(ready?.status, 'True', `${ready?.message}; ${JSON.stringify(entry.components)}`);
      for (const registration of [...this.registrations.registrations.all()] as Registration[]) {
        const key: ComponentKey = { entryUid: entry.ref.uid, component: registration.name };
        const record: RunRecord | undefined = this.inventory.record(key)?.record;
        assert.equal(record?.phase, 'Idle');
        assert.equal(record.credentialId, undefined);
        assert.equal(record.inputsDigest, digestInputs(entry.content, registration, undefined).digest);
      }
    }
  }

  async end(): Promise<void> {
    for (const ship of this.ships.splice(0)) await ship.stop();
  }
}

async function play(number: number, andDelete: boolean): Promise<void> {
  const history = new History(seededRandom(number));
  for (let i = 0; i < 3; i++) history.inventory.create({ name: `e${i}` });
  history.start();
  for (let i = 0; i < 12; i++) await history.act();
  try {
    await history.settle();
    history.check();
    if (andDelete) {
      history.calm = false;
      for (let i = 0; i < 3; i++) history.inventory.delete({ name: `e${i}` });
      for (let i = 0; i < 4; i++) await history.clock.advance(1000);
      history.calm = true;
      await history.clock.advance(25_000);
      for (let i = 0; i < 3; i++) assert.equal(history.inventory.entry({ name: `e${i}` }), undefined);
      assert.deepEqual(history.inventory.records(), []);
    }
  } catch (error) {
    throw new Error(`DRAWBRIDGE_SEED=${number} RUNS=1 repeats it`, { cause: error });
  } finally {
    await history.end();
  }
}

describe('mothership, random histories', () => {
  it(`settles on the right state, with one call a run, whatever happens (DRAWBRIDGE_SEED=${seed} RUNS=${schedules})`, async function () {
    this.timeout(60_000 + schedules * 1000);
    for (let i = 0; i < schedules; i++) await play(seed + i, (seed + i) % 3 === 0);
  });
});
