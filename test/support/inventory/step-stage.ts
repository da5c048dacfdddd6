import type { Outcome } from '../../../src/api/inventory/contract/outcome.ts';
import {
  type Effect,
  type Inputs,
  initialKeyState,
  type KeyEvent,
  type KeyState,
} from '../../../src/inventory/core/key-state.ts';
import type { RunRecord } from '../../../src/inventory/core/run-record.ts';
import { step } from '../../../src/inventory/core/steps/step.ts';
import { type Trigger, trigger } from '../../../src/inventory/core/triggers.ts';
import type { Registration } from '../../../src/inventory/registration.ts';
import { registrationOf } from './registrations.ts';

const entry = { namespace: 'inv', name: 'c1', uid: 'u1' };
const startMs = Date.UTC(2026, 10, 21, 9);

/** Inputs of an entry. Defaults: digest `a`, may reconcile, nothing arrived. */
export const inputsOf = (rest: Partial<Inputs> = {}): Inputs => ({
  digest: 'a',
  resourceVersion: '1',
  arrived: false,
  mayRun: { may: 'reconcile' },
  ...rest,
});

/** One key driven by events, with a store that never conflicts. `effects` are those of the last event. */
export class StepStage {
  state: KeyState = initialKeyState;
  effects: readonly Effect[] = [];
  nowMs = startMs;
  monotonicMs = 1000;
  inputs = inputsOf();
  random = 0.5;
  readonly registration: Registration;
  #version = 0;

  constructor(registration: Partial<Registration> = {}) {
    this.registration = registrationOf('network', registration);
  }

  get record(): RunRecord {
    if (!this.state.stored) throw new Error('no record');
    return this.state.stored.record;
  }

  get kinds(): readonly string[] {
    return this.effects.map(({ kind }) => kind);
  }

  effect<Kind extends Effect['kind']>(kind: Kind): Extract<Effect, { kind: Kind }> {
    const found = this.effects.find((one): one is Extract<Effect, { kind: Kind }> => one.kind === kind);
    if (!found) throw new Error(`no ${kind} among ${this.kinds.join(', ')}`);
    return found;
  }

  handle(event: KeyEvent): this {
    const { nowMs, monotonicMs, registration } = this;
    const context = { nowMs, monotonicMs, random: () => this.random, entry, registration };
    const { state, effects } = step(this.state, event, context);
    this.state = state;
    this.effects = effects;
    if (effects.some(({ kind }) => kind === 'store') && state.stored) {
      this.state = { ...state, stored: { ...state.stored, resourceVersion: this.#nextVersion() } };
    }
    return this;
  }

  later(ms: number): this {
    this.nowMs += ms;
    this.monotonicMs += ms;
    return this;
  }

  see(inputs: Partial<Inputs>): this {
    this.inputs = { ...this.inputs, ...inputs };
    return this;
  }

  trigger(reason: Trigger['reason'], rest: Partial<Trigger> = {}): this {
    return this.handle({ kind: 'trigger', trigger: trigger(reason, rest), inputs: this.inputs });
  }

  dequeued(): this {
    return this.handle({ kind: 'dequeued', inputs: this.inputs });
  }

  /** Stores the requested start. */
  started(): this {
    const { next } = this.effect('start');
    const record = { ...next, credentialId: `JTI=${next.seq}` };
    const stored = { record, resourceVersion: this.#nextVersion() };
    return this.handle({ kind: 'started', stored, inputs: this.inputs });
  }

  /** Queues, starts, and calls the key. */
  running(): this {
    return this.trigger('Created').dequeued().started();
  }

  outcome(outcome: Outcome, missing?: { heldAtStart: boolean; holdsNow: boolean }, seq = this.record.seq): this {
    return this.handle({ kind: 'outcome', seq, outcome, inputs: this.inputs, ...(missing ? { missing } : {}) });
  }

  /** Its component answers 202. */
  accepted(heartbeatTimeoutMs = 60_000): this {
    return this.handle({ kind: 'accepted', heartbeatTimeoutMs, inputs: this.inputs });
  }

  heartbeat(heartbeatTimeoutMs = 60_000, credential?: { id: string; expiresAtMs: number }): this {
    return this.handle({ kind: 'heartbeat', heartbeatTimeoutMs, credential, inputs: this.inputs });
  }

  /** The endpoint does not accept the call. */
  unreachable(retryAfterMs?: number): this {
    const [code, message] = ['Unreachable', 'refused'] as const;
    return this.handle({
      kind: 'notAccepted',
      code,
      message,
      retryAfterMs,
      probeDelayMs: undefined,
      inputs: this.inputs,
    });
  }

  /** Runs the key once until it is idle. */
  done(): this {
    return this.running().outcome({ outcome: 'Done' }).later(1000);
  }

  /** Starts its teardown after a run. */
  tearingDown(): this {
    return this.done()
      .see({ mayRun: { may: 'delete' } })
      .trigger('Deleting')
      .dequeued()
      .started();
  }

  suspend(): this {
    return this.see({ mayRun: { may: 'no', why: 'Suspended' } });
  }

  #nextVersion(): string {
    this.#version += 1;
    return `v${this.#version}`;
  }
}

export const notReady: Outcome = {
  outcome: 'NotReady',
  missing: [{ path: '/status/outputs/cluster/endpoint', want: 'present' }],
};

/** The phase and the kinds of the last effects. */
export const seen = (stage: StepStage): string => [stage.state.phase, ...stage.kinds].join(' ');
export const nextInMs = (stage: StepStage): number => (stage.record.nextAtMs ?? Number.NaN) - stage.nowMs;
export const reasons = (stage: StepStage): readonly string[] => stage.effect('enqueue').reasons;
