import type { ConditionUpdate } from '../api/conditions.ts';
import type { ProviderStatus } from '../api/notify/notification-provider.ts';
import type { Condition } from '../api/object.ts';
import type { Answer } from './sink.ts';
import type { SinkProblem } from './sink-of.ts';
import type { ProviderView } from './stores.ts';

/** Of a message, or of what it needs. */
interface Health {
  readonly state: 'Ready' | 'SecretUnreadable' | SinkProblem['code'] | Extract<Answer, { delivered: false }>['code'];
  readonly message: string;
}

export type Tested = NonNullable<ProviderStatus['lastTest']>;

interface Known {
  readonly uid: string;
  readonly generation: number;
  health?: Health;
  tested?: Tested;
  /** Epoch ms. */
  testedMs?: number;
}

const testEveryMs = 5_000;

/** What the last message to each provider showed, until its status has it. */
export class ProviderHealths {
  readonly #known = new Map<string, Known>();
  readonly #onChange: (key: string) => void;

  /** `onChange`: the status may have to change. */
  constructor(onChange: (key: string) => void) {
    this.#onChange = onChange;
  }

  /** For a new leadership. */
  clear(): void {
    this.#known.clear();
  }

  forget(key: string): void {
    this.#known.delete(key);
  }

  /** True if the provider was edited since the last call. */
  begin({ key, uid, generation }: ProviderView): boolean {
    const known = this.#known.get(key);
    if (known?.uid === uid && known.generation === generation) return false;
    const { tested, testedMs } = known?.uid === uid ? known : {};
    this.#known.set(key, { uid, generation, ...(tested && testedMs ? { tested, testedMs } : {}) });
    return known?.uid === uid;
  }

  saw({ key, uid, generation }: ProviderView, health: Health): void {
    const known = this.#known.get(key);
    if (known?.uid !== uid || known.generation !== generation) return;
    const before = known.health?.state;
    known.health = health;
    if (before !== health.state) this.#onChange(key);
  }

  tested({ key }: ProviderView, tested: Tested, nowMs: number): void {
    const known = this.#known.get(key);
    if (!known) return;
    known.tested = tested;
    known.testedMs = nowMs;
    this.#onChange(key);
  }

  /** When a test message is due (epoch ms), if one is asked for. */
  testMs({ key, testId, lastTest }: ProviderView, nowMs: number): number | undefined {
    const { tested, testedMs } = this.#known.get(key) ?? {};
    if (testId === undefined || testId === lastTest?.id || testId === tested?.id) return undefined;
    return Math.max(nowMs, (testedMs ?? 0) + testEveryMs);
  }

  /** Until the provider is edited. */
  isGone(provider: ProviderView): boolean {
    const health = this.#healthOf(provider);
    return health ? health.state === 'Gone' : readyOf(provider)?.reason === 'Gone';
  }

  /** Undefined: as it is. */
  conditionOf(provider: ProviderView): ConditionUpdate<Condition> | undefined {
    const wanted = this.#wanted(provider);
    const ready = readyOf(provider);
    // The message of each answer would change the object all the time.
    if (wanted === undefined || ready?.reason === wanted.reason) return undefined;
    return { type: 'Ready', ...wanted };
  }

  testOf({ key, lastTest }: ProviderView): Tested | undefined {
    const tested = this.#known.get(key)?.tested;
    return tested?.id === lastTest?.id ? undefined : tested;
  }

  #wanted(provider: ProviderView): Pick<Condition, 'status' | 'reason' | 'message'> | undefined {
    if (provider.spec.suspend)
      return { status: 'False', reason: 'Suspended', message: 'spec.suspend is true; messages wait for at most 24 h' };
    const health = this.#healthOf(provider);
    if (health) {
      const { state, message } = health;
      return { status: state === 'Ready' ? 'True' : 'False', reason: state, message };
    }
    if (readyOf(provider)) return undefined;
    const message = `nothing was sent yet; try it: drawbridge notify test ${provider.name} -n ${provider.namespace}`;
    return { status: 'Unknown', reason: 'Unproven', message };
  }

  #healthOf({ key, uid, generation }: ProviderView): Health | undefined {
    const known = this.#known.get(key);
    return known?.uid === uid && known.generation === generation ? known.health : undefined;
  }
}

/** Of the present spec. */
const readyOf = ({ conditions, generation }: ProviderView): Condition | undefined =>
  conditions.find(({ type, observedGeneration }) => type === 'Ready' && observedGeneration === generation);
