import assert from 'node:assert/strict';
import { accessSessions } from '../../../src/api/access/access-session.ts';
import type { RequestKind } from '../../../src/api/access/kinds.ts';
import { childNameOf } from '../../../src/api/access/names.ts';
import { type AccessEvent, accessEvents } from '../../../src/api/notify/events.ts';
import { notificationProviders } from '../../../src/api/notify/notification-provider.ts';
import { notificationSubscriptions } from '../../../src/api/notify/notification-subscription.ts';
import { apiVersionOf } from '../../../src/api/object.ts';
import { configMaps } from '../../../src/api/resources.ts';
import { formatTime, parseTime, sleep } from '../../../src/kit/clock.ts';
import type { Fact } from '../../../src/notify/fact.ts';
import type { Answer, Message, Sink } from '../../../src/notify/sink.ts';
import { MemoryCluster } from '../binding/memory-cluster.ts';
import { seededRandom } from '../random.ts';
import { SimulatedClock } from '../simulated-clock.ts';
import { conditionAt, grantUntil, objectOf, resourceOf, subscriptionSpec, teamsSpec } from './objects.ts';
import { Replica, type ReplicaWorld } from './replica.ts';

const second = 1_000;
const minute = 60 * second;

const sinks = ['healthy', 'other', 'hanging', 'dead', 'flaky', 'limited'] as const;
type SinkName = (typeof sinks)[number];
const healthy: readonly SinkName[] = ['healthy', 'other'];

/** A fact that the history made happen. */
interface Expected {
  readonly event: AccessEvent;
  readonly uid: string;
  readonly n: number;
  readonly bornMs: number;
  mootMs: number;
}

interface Told {
  readonly sink: SinkName;
  readonly atMs: number;
  readonly fact: Fact;
  readonly size: number;
}

export interface HistoryReport {
  readonly told: number;
  readonly happened: ReadonlyMap<string, number>;
}

const nameOfFact = ({ event, request, session, extension, untilMs }: Fact): string =>
  [event, session?.name ?? request.uid, event === 'ending' ? untilMs : (extension?.index ?? 0)].join(' ');

/** A random history of requests, crashes, and takeovers, whose end checks what was told. */
class History implements ReplicaWorld {
  readonly clock = new SimulatedClock();
  readonly api = new MemoryCluster(this.clock);
  readonly random: () => number;
  readonly isCalm: boolean;
  readonly happened = new Map<string, number>();
  readonly expected: Expected[] = [];
  readonly told: Told[] = [];
  readonly #replicas = new Set<Replica>();
  readonly #all: Replica[] = [];
  /** When a replica led without a break. */
  readonly #led: { readonly leader: Replica; readonly startMs: number; endMs: number }[] = [];
  /** When an object was deleted, by uid. */
  readonly #gone = new Map<string, number>();
  readonly #lastEventMs = new Map<object, number>();
  readonly #subscribed: {
    readonly sink: SinkName;
    readonly namespace: string;
    readonly events: ReadonlySet<string>;
  }[] = [];
  #leader: Replica | undefined;
  #isOver = false;
  #uid = 0;
  #limitedMs = 0;
  #isFaulty: boolean;

  constructor(seed: number) {
    this.random = seededRandom(seed);
    this.isCalm = this.chance(0.25);
    this.#isFaulty = !this.isCalm;
    this.api.deliver = (watch, event) => this.#deliver(watch, event);
  }

  chance(p: number): boolean {
    return this.random() < p;
  }

  between(least: number, most: number): number {
    return least + Math.floor(this.random() * (most - least + 1));
  }

  latency(): number {
    return this.between(1, this.isCalm ? 20 : 200);
  }

  count(what: string): void {
    this.happened.set(what, (this.happened.get(what) ?? 0) + 1);
  }

  step(replica: Replica, what: string): void {
    if (this.#isFaulty && replica === this.#leader && this.chance(0.01)) {
      this.count(`crash at ${what}`);
      this.#crash(replica);
    }
  }

  async sink({ address }: Sink, message: Message, signal: AbortSignal): Promise<Answer> {
    const sink = address?.hostname.replace('.example', '') as SinkName;
    const accept = (): Answer => {
      const { facts } = message;
      if (facts.length > 1) this.count('digest');
      for (const fact of facts) this.told.push({ sink, atMs: this.clock.now(), fact, size: facts.length });
      return { delivered: true, said: 'ok', ref: `ref-${message.id}` };
    };
    await new Promise<void>((resolve) => this.clock.schedule(this.between(5, 200), resolve));
    switch (sink) {
      case 'hanging':
        await sleep(this.clock, 10 * second, signal);
        return { delivered: false, code: 'Unreachable', said: 'no answer' };
      case 'dead':
        return { delivered: false, code: 'Unreachable', said: 'refused' };
      case 'limited':
        if (this.clock.now() < this.#limitedMs) {
          this.count('rate limited');
          return { delivered: false, code: 'Refused', said: '429', retryAfterMs: this.#limitedMs - this.clock.now() };
        }
        this.#limitedMs = this.clock.now() + 10 * second;
        return accept();
      case 'flaky': {
        if (!this.#isFaulty) return accept();
        if (this.chance(0.3)) return { delivered: false, code: 'Refused', said: '500' };
        if (this.chance(0.8)) return accept();
        accept();
        return { delivered: false, code: 'Unreachable', said: 'lost' };
      }
      default:
        return accept();
    }
  }

  async run(): Promise<HistoryReport> {
    this.#configure();
    this.#start();
    this.#start();
    this.#elect(0);
    await this.clock.advance(5 * second);
    const requests = Array.from({ length: this.isCalm ? 6 : this.between(4, 14) }, () =>
      this.#request(this.between(0, 4 * minute)),
    );
    void requests;
    if (!this.isCalm) this.#disturb();
    await this.clock.advance(14 * minute);
    this.#isFaulty = false;
    await this.clock.advance(5 * minute);
    // What a sink refused several times would wait for an hour; an edit of the provider makes it due.
    for (const sink of this.isCalm ? [] : (['flaky', 'limited'] as const)) this.#put(sink, { timeout: '20s' });
    await this.clock.advance(5 * minute);
    this.#isOver = true;
    this.#close();
    this.#check();
    for (const replica of this.#replicas) replica.kill();
    return { told: this.told.length, happened: this.happened };
  }

  #configure(): void {
    const names = this.isCalm ? healthy : sinks;
    for (const sink of names) {
      this.#put(sink);
      for (const namespace of ['payments', 'shop']) {
        for (const part of this.chance(0.3) ? ['a', 'b'] : ['a']) {
          const events = accessEvents.filter(() => sink === 'healthy' || this.chance(0.8));
          this.#subscribed.push({ sink, namespace, events: new Set(events) });
          const spec = subscriptionSpec(sink, events, { providerRef: { name: sink, namespace: 'tools' } });
          this.api.put(
            notificationSubscriptions,
            objectOf(notificationSubscriptions, namespace, `${sink}-${part}`, spec),
          );
        }
      }
    }
  }

  #put(sink: SinkName, over: object = {}): void {
    const { status } = this.api.find(notificationProviders, { namespace: 'tools', name: sink }) ?? {};
    const spec = teamsSpec(sink, { namespaces: ['*'], ...over });
    this.api.put(notificationProviders, { ...objectOf(notificationProviders, 'tools', sink, spec), status });
  }

  // Replicas

  #start(): void {
    const replica = new Replica(this);
    this.#replicas.add(replica);
    this.#all.push(replica);
  }

  #close(): void {
    const last = this.#led.at(-1);
    if (last?.endMs === Number.POSITIVE_INFINITY) last.endMs = this.clock.now();
  }

  #elect(delayMs: number): void {
    this.clock.schedule(delayMs, () => {
      if (this.#leader || this.#isOver) return;
      const candidates = [...this.#replicas].filter(({ mayLead }) => mayLead);
      const leader = candidates[this.between(0, candidates.length - 1)];
      if (!leader) {
        this.#elect(second);
        return;
      }
      this.count('takeover');
      this.#leader = leader;
      this.#led.push({ leader, startMs: this.clock.now(), endMs: Number.POSITIVE_INFINITY });
      leader.lead();
    });
  }

  #crash(replica: Replica): void {
    // What is deleted while none runs is not told.
    if (this.#replicas.size < 2) return;
    this.#replicas.delete(replica);
    if (replica === this.#leader) this.#unlead(this.between(1, 15) * second);
    replica.kill();
    this.clock.schedule(this.between(1, 20) * second, () => this.#start());
  }

  #unlead(untilMs: number): void {
    this.#close();
    this.#leader = undefined;
    this.#elect(untilMs);
  }

  #disturb(): void {
    this.clock.schedule(this.between(5, 60) * second, () => {
      if (!this.#isFaulty) return;
      const kind = this.random();
      const leader = this.#leader;
      if (kind < 0.3 && leader) this.#crash(leader);
      else if (kind < 0.4) this.#crashStandby();
      else if (kind < 0.6 && leader) {
        this.count('Lease lost');
        leader.lose();
        this.#unlead(this.between(0, 5) * second);
      } else if (kind < 0.8 && leader && this.#replicas.size > 1) this.#roll(leader);
      this.#disturb();
    });
  }

  #crashStandby(): void {
    const standby = [...this.#replicas].find((replica) => replica !== this.#leader);
    if (standby && this.#leader) this.#crash(standby);
  }

  /** As a rolling update. */
  #roll(leader: Replica): void {
    this.count('shutdown');
    this.#replicas.delete(leader);
    this.#start();
    this.#close();
    void leader.shutDown().then(() => {
      if (this.#leader !== leader) return;
      this.#leader = undefined;
      this.#elect(this.between(100, 2000));
    });
  }

  #deliver(watch: object, event: () => void): void {
    const atMs = Math.max(
      this.#lastEventMs.get(watch) ?? 0,
      this.clock.now() + this.between(0, this.isCalm ? 10 : 500),
    );
    this.#lastEventMs.set(watch, atMs);
    this.clock.schedule(atMs - this.clock.now(), event);
  }

  // Requests

  #expect(event: AccessEvent, uid: string, n: number): Expected {
    const expected = { event, uid, n, bornMs: this.clock.now(), mootMs: Number.POSITIVE_INFINITY };
    this.expected.push(expected);
    return expected;
  }

  #request(afterMs: number): void {
    this.clock.schedule(afterMs, () => this.#live());
  }

  /** As the leader of access and people would write it. */
  #live(): void {
    const kind: RequestKind = this.chance(0.5) ? 'PodAccessRequest' : 'ExecAccessRequest';
    const resource = resourceOf(kind);
    const namespace = this.chance(0.5) ? 'payments' : 'shop';
    const [name, uid] = [`request-${++this.#uid}`, `uid-${this.#uid}-${'x'.repeat(8)}`];
    const isEmergency = this.chance(0.2);
    const needsVotes = !isEmergency && this.chance(0.7);
    const spec: Record<string, unknown> = {
      templateName: 'shell',
      reason: 'INC-1',
      ...(isEmergency ? { emergency: true } : {}),
      requester: { username: 'alice', uid: '1', groups: ['devs'], time: formatTime(this.clock.now()) },
    };
    let status: Record<string, unknown> = {};
    const write = (change: Record<string, unknown> = {}): void => {
      status = { ...status, ...change };
      const managedFields = [{ manager: 'drawbridge', time: formatTime(this.clock.now()) }];
      this.api.put(resource, { ...objectOf(resource, namespace, name, spec, { uid, managedFields }), status });
    };
    const later = (least: number, most: number, act: () => void): void =>
      void this.clock.schedule(this.between(least * second, most * second), act);
    const conditions: object[] = [];
    const open: Expected[] = [];
    const moot = (...events: AccessEvent[]): void => {
      for (const one of open) if (events.includes(one.event)) one.mootMs = Math.min(one.mootMs, this.clock.now());
    };
    const expect = (event: AccessEvent, n = 0): void => void open.push(this.#expect(event, uid, n));
    write();
    if (!isEmergency) expect('requested');

    const remove = (): void => {
      this.#gone.set(uid, this.clock.now());
      this.api.drop(resource, { namespace, name });
    };
    const end = (how: 'Denied' | 'Expired' | 'Revoked'): void => {
      moot('requested', 'approved', 'ending', 'extended', 'extension.requested');
      if (how !== 'Denied' && this.chance(0.3)) {
        this.count('deleted at its end');
        expect('ended');
        remove();
        return;
      }
      const owed = isEmergency && this.chance(0.5);
      const approval = owed ? { approval: { state: 'ReviewOwed', due: formatTime(this.clock.now() + minute) } } : {};
      const at = formatTime(this.clock.now());
      write({ ...approval, children: [], ended: { at, how, reason: 'Because', keptUntil: at } });
      expect(how === 'Denied' ? 'denied' : 'ended');
      if (owed) {
        expect('review-owed');
        later(61, 90, () => {
          moot('review-owed');
          write({ approval: { state: 'ReviewOverdue', due: formatTime(this.clock.now()) } });
          expect('review-overdue');
        });
      } else if (this.chance(0.5)) later(1, 60, remove);
    };

    const grant = (): void => {
      moot('requested');
      const nowMs = this.clock.now();
      const endMs = nowMs + this.between(30, 300) * second;
      const granted = grantUntil({ name, uid }, nowMs, endMs, needsVotes ? { votes: ['v-1'] } : {});
      write({ grant: granted, expiresAt: formatTime(endMs) });
      later(0, 2, () => {
        conditions.push(conditionAt('AccessResourcesCreated', 'True', this.clock.now()));
        write({ conditions, children: [{ kind: 'Pod', name: childNameOf({ name, uid }), uid: 'p' }] });
        expect(isEmergency ? 'emergency' : 'granted');
        live(endMs, 0);
      });
    };

    const live = (endMs: number, extensions: number): void => {
      let over = false;
      const startMs = Math.floor(this.clock.now() / second) * second;
      void startMs;
      if (this.chance(0.5)) this.#session(kind, namespace, { name, uid }, endMs);
      if (extensions === 0 && this.chance(0.3)) {
        later(1, 20, () => {
          if (over) return;
          spec['extensions'] = [{ by: '1m', reason: 'more' }];
          write();
          expect('extension.requested', 1);
          later(1, 20, () => {
            if (over) return;
            over = true;
            moot('extension.requested', 'ending');
            const extendedMs = endMs + minute;
            const extension = { by: '1m', state: 'Granted', expiresAt: formatTime(extendedMs) };
            write({ extensions: [extension], expiresAt: formatTime(extendedMs) });
            expect('extended', 1);
            live(extendedMs, 1);
          });
        });
      }
      if (this.chance(0.3)) {
        later(5, 100, () => {
          if (over) return;
          over = true;
          end('Revoked');
        });
      }
      this.clock.schedule(Math.max(0, endMs - this.clock.now()) + this.between(0, 2000), () => {
        if (over) return;
        over = true;
        end('Expired');
      });
    };

    if (!needsVotes) {
      later(0, 3, grant);
      return;
    }
    const all = (have: number) => [{ name: 'peer', have, need: 1 }];
    later(0, 1, () =>
      write({ approval: { state: 'Pending', due: formatTime(this.clock.now() + 60 * minute), all: all(0) } }),
    );
    later(3, 60, () => {
      if (this.chance(0.3)) {
        end('Denied');
        return;
      }
      const vote = { uid: 'v-1', voter: 'bob', decision: 'Approve', at: formatTime(this.clock.now()), reason: 'fine' };
      conditions.push(conditionAt('AccessApproved', 'True', this.clock.now()));
      write({ conditions, approval: { state: 'Approved', all: all(1), votes: [vote] } });
      expect('approved');
      later(0, 30, grant);
    });
  }

  #session(kind: RequestKind, namespace: string, request: { name: string; uid: string }, endMs: number): void {
    const name = `00000000-0000-4000-8000-${String(++this.#uid).padStart(12, '0')}`;
    const spec = {
      user: 'alice',
      grant: childNameOf(request),
      request: { kind, name: request.name },
      pod: 'web-0',
      ...{ stream: 'exec', tty: true, recording: 'Off', replica: 'gateway-0' },
      startedAt: formatTime(this.clock.now()),
    };
    const ownerReferences = [{ apiVersion: apiVersionOf(resourceOf(kind)), kind, ...request }];
    this.api.put(accessSessions, objectOf(accessSessions, namespace, name, spec, { uid: name, ownerReferences }));
    this.#expect('session.started', name, 0);
    this.clock.schedule(Math.min(this.between(1, 120) * second, endMs - this.clock.now()), () => {
      this.api.drop(accessSessions, { namespace, name });
      this.#gone.set(name, this.clock.now());
      this.#expect('session.ended', name, 0);
    });
  }

  // Checks

  #check(): void {
    this.#checkDelivered();
    this.#checkIds();
    this.#checkWrites();
    if (this.isCalm) this.#checkCalm();
  }

  /** The time by which a healthy sink must have it: 5 s of one leadership. */
  #deadlineOf({ uid, bornMs }: Expected): number | undefined {
    for (const { leader, startMs, endMs } of this.#led) {
      const fromMs = Math.max(startMs, bornMs);
      // A replica that started later does not know what was deleted.
      const isKnown = leader.startedMs <= (this.#gone.get(uid) ?? Number.POSITIVE_INFINITY);
      if (endMs - fromMs < 5 * second || !isKnown) continue;
      return fromMs + 5 * second;
    }
    return undefined;
  }

  #checkDelivered(): void {
    // Nothing is told that happened before the first leader stored that it began.
    const [head] = this.api.list(configMaps);
    const beganMs = parseTime(head?.metadata.creationTimestamp ?? '') ?? 0;
    for (const expected of this.expected.filter(({ bornMs }) => bornMs >= beganMs)) {
      const dueMs = this.#deadlineOf(expected);
      if (dueMs === undefined || dueMs > expected.mootMs) continue;
      for (const { sink, namespace, events } of this.#subscribed) {
        if (!events.has(expected.event)) continue;
        const isIts = ({ fact }: Told): boolean =>
          fact.event === expected.event && (fact.session?.name ?? fact.request.uid) === expected.uid;
        const its = this.told.filter((told) => told.sink === sink && isIts(told));
        const known = this.#namespaceOf(expected.uid);
        if (known !== undefined && known !== namespace) continue;
        if (sink === 'hanging' || sink === 'dead') {
          assert.equal(its.length, 0);
          continue;
        }
        const text = `${expected.event} of ${expected.uid}, from ${formatTime(expected.bornMs)}, to ${sink}`;
        const isHealthy = healthy.includes(sink);
        if (isHealthy || expected.mootMs === Number.POSITIVE_INFINITY)
          assert.ok(its.length > 0, `${text} is never told`);
        if (!isHealthy) continue;
        const firstMs = Math.min(...its.map(({ atMs }) => atMs));
        assert.ok(
          firstMs <= dueMs,
          `${text} is told at ${firstMs - expected.bornMs} ms, due at ${dueMs - expected.bornMs}`,
        );
      }
    }
  }

  #namespaceOf(uid: string): string | undefined {
    return this.told.find(({ fact }) => (fact.session?.name ?? fact.request.uid) === uid)?.fact.request.namespace;
  }

  #checkIds(): void {
    const byId = new Map<string, string>();
    const byName = new Map<string, string>();
    for (const { fact } of this.told) {
      const name = nameOfFact(fact);
      assert.equal(byId.get(fact.id) ?? name, name, 'two facts have one id');
      assert.equal(byName.get(name) ?? fact.id, fact.id, 'one fact has two ids');
      byId.set(fact.id, name);
      byName.set(name, fact.id);
    }
    const keys = this.told.map(({ sink, fact }) => `${sink} ${fact.id}`);
    for (let i = keys.length - new Set(keys).size; i > 0; i--) this.count('told twice');
  }

  #checkWrites(): void {
    const allowed = ['configmaps', 'notificationproviders', 'notificationsubscriptions'];
    for (const { verb, plural } of this.api.calls) if (verb !== 'get') assert.ok(allowed.includes(plural), plural);
    for (const { metadata, data } of this.api.list(configMaps)) {
      const bytes = Buffer.byteLength((data as { state: string }).state);
      assert.ok(bytes <= 512 * 1024, `${metadata.name} has ${bytes} bytes`);
    }
  }

  #checkCalm(): void {
    assert.equal(this.happened.get('told twice'), undefined, 'no fact is told twice without a crash');
    const writes = this.api.calls.filter(({ verb, plural }) => verb === 'patch' && plural === 'configmaps').length;
    // One at the first start, then one a minute.
    assert.ok(writes <= 1 + 27, `${writes} writes of the outbox`);
    assert.ok(this.expected.length === 0 || this.told.length > 0);
  }
}

export const runHistory = (seed: number): Promise<HistoryReport> => new History(seed).run();
