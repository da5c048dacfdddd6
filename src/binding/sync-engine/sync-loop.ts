import type { Resource } from '../../api/object.ts';
import { Controller } from '../../engine/controller.ts';
import type { Source } from '../../engine/source.ts';
import { hintSource } from '../../engine/sources/hint.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Log } from '../../observe/log.ts';
import type { BindingDeps } from '../deps.ts';
import { bindingMetrics, Latency, type SyncObserver } from '../metrics.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import { CallSender } from './call-sender.ts';
import { DeleteBreaker, heldDeletes } from './delete-breaker.ts';
import { Problems, recordProblem } from './problems.ts';
import { SyncReconciler, type SyncReconcilerOptions } from './reconciler.ts';
import { type RefusableWatch, refusedWatch } from './refused-watches.ts';
import type { KeyState, SyncPass, SyncStrategy } from './strategy.ts';
import type { RefusedWatch, Side, SyncMode } from './syncer.ts';

export interface SyncLoopOptions {
  readonly prefix: 'sync' | 'claims';
  readonly session: ProviderSession;
  /** Name of the export, and of its binding. */
  readonly binding: string;
  /** In the consumer. `label`: its name in metrics, log lines, and problems. */
  readonly resource: Resource;
  readonly label: string;
  readonly mode: SyncMode;
  readonly workers: number;
  readonly random: () => number;
  /** At most five times a second: what `Syncer` reports may have changed. */
  readonly onChange: (() => void) | undefined;
}

/** What differs between bound and claimed objects. */
export interface SyncLoopParts {
  readonly strategy: SyncStrategy;
  readonly sources: readonly Source[];
  keys(): Iterable<string>;
  /** Synced objects in the consumer, copies in the provider. */
  size(): { readonly objects: number; readonly copies: number };
  /** `Store.ageMs` of the watches; an absent side has no metric. */
  readonly ages: Partial<Record<Side, () => number>>;
  readonly watches: Readonly<Record<Side, RefusableWatch>>;
  /** For lists that are not complete, consumer first. */
  unlisted(): readonly string[];
}

const sides = ['consumer', 'provider'] as const;
/** A list may take this long before it is a problem. */
const LIST_MS = 30_000;

/**
 * Runs the sync of one kind of bound or claimed objects.
 *
 *   watches ─ sources ─> Controller ─ key ─> SyncReconciler ─ plan ─> SyncStrategy
 *                                                 │ calls
 *                            DeleteBreaker ─ CallSender (CallBackoff) ─> either cluster
 */
export class SyncLoop {
  readonly problems: Problems;
  readonly log: Log;
  readonly observer: SyncObserver;
  readonly #options: SyncLoopOptions;
  readonly #deps: BindingDeps;
  readonly #breaker = new DeleteBreaker();
  readonly #latency: SyncReconcilerOptions['latency'];
  readonly #hints = hintSource('resync');
  readonly #stops: (() => void)[];
  readonly #notify: ReturnType<typeof coalesce>;
  readonly #openedAtMs: number;
  #parts: SyncLoopParts | undefined;
  #sender: CallSender | undefined;
  #held = 0;
  #refused = 0;

  constructor(options: SyncLoopOptions, deps: BindingDeps) {
    const { session, binding, label, onChange } = options;
    this.#notify = coalesce(deps.clock, onChange ?? (() => undefined));
    const { clock } = deps;
    this.#options = options;
    this.#deps = deps;
    this.problems = new Problems(this.#notify.trigger);
    this.log = deps.log.child({ provider: session.id, export: binding, kind: label });
    this.observer = bindingMetrics(deps.metrics).observer(label);
    this.#latency = { up: new Latency(clock), down: new Latency(clock) };
    this.#openedAtMs = clock.monotonic();
    this.#stops = [
      clock.schedule(LIST_MS, () => {
        if (this.#parts?.unlisted().length) this.#notify.trigger();
      }),
      this.#notify.stop,
    ];
  }

  /** Creates the controller and registers the metrics. Call once. */
  open(parts: SyncLoopParts): Controller {
    const { strategy, sources } = parts;
    const { prefix, session, binding, label, workers, random } = this.#options;
    const { clock, log, metrics } = this.#deps;
    const { observer } = this;
    const breaker = this.#breaker;
    const latency = this.#latency;
    const wake = (key: string): void => void this.#hints.hint(key, 'reachable');
    const sender = new CallSender({ rules: strategy.rules, clock, log: this.log, observer, random, wake });
    this.#sender = sender;
    this.#parts = parts;
    this.#measure(parts);
    for (const side of sides) this.#stops.push(parts.watches[side].onRefusal(() => this.#onRefusal()));
    const report: SyncReconcilerOptions['report'] = (pass, consumer) => this.#report(pass, consumer);
    return new Controller({
      name: `${prefix}/${session.id}/${binding}/${label}`,
      sources: [
        atStart(() => {
          for (const state of [strategy, sender, breaker, latency.up, latency.down]) state.clear();
        }),
        ...sources,
        this.#hints,
      ],
      reconciler: new SyncReconciler({ strategy, sender, breaker, observer, latency, report, clock }),
      workers,
      clock,
      log,
      // Without the session id, so that the series continue after a rotation of credentials.
      metrics: metrics.controller(`${prefix}/${binding}/${label}`),
      random,
    });
  }

  /** After each event of the key. */
  recordChange(side: Side, key: string): void {
    (side === 'consumer' ? this.#latency.up : this.#latency.down).start(key);
    if (this.#options.mode !== 'sync') this.#notify.trigger();
  }

  wakeAll(reason: string): void {
    for (const key of new Set(this.#parts?.keys())) this.#hints.hint(key, reason);
  }

  resync(): void {
    this.#sender?.clear();
    this.wakeAll('resync');
  }

  allowDeletes(): void {
    for (const key of this.#breaker.allow()) this.#hints.hint(key, 'allowed');
  }

  /** Those of the whole kind, then of single objects, worst first. */
  listProblems(): string[] {
    const { binding, label } = this.#options;
    const { held } = this.#breaker;
    const ofKind = (this.#isPastStart && this.#parts?.unlisted()) || [];
    const heldBack = held > 0 ? [heldDeletes(held, binding)] : [];
    return [...[...ofKind, ...heldBack].map((problem) => `${label}: ${problem}`), ...this.problems.list(label)];
  }

  refusedWatches(): readonly RefusedWatch[] {
    const { resource } = this.#options;
    return sides.flatMap((side) => (this.#parts && refusedWatch(side, resource, this.#parts.watches[side])) ?? []);
  }

  /** When a list is complete or its watch has ended. */
  listed(): void {
    if (this.#isPastStart || this.#options.mode !== 'sync') this.#notify.trigger();
  }

  /** The caller stops the controller. */
  close(): void {
    for (const stop of this.#stops.splice(0)) stop();
  }

  /** Once no watch is refused any more, writes may be allowed again, too: retries all. */
  #onRefusal(): void {
    const before = this.#refused;
    this.#refused = this.refusedWatches().length;
    if (this.#refused === before) return;
    if (this.#refused === 0) this.resync();
    this.#notify.trigger();
  }

  get #isPastStart(): boolean {
    return this.#deps.clock.monotonic() - this.#openedAtMs >= LIST_MS;
  }

  #measure({ size, ages }: SyncLoopParts): void {
    const { session, binding, label: resource } = this.#options;
    const metrics = bindingMetrics(this.#deps.metrics);
    for (const side of sides) {
      const age = ages[side];
      if (age) this.#stops.push(metrics.registerWatchAge({ session: session.id, side, resource }, age));
      const count = side === 'consumer' ? () => size().objects : () => size().copies;
      this.#stops.push(metrics.registerObjectCount({ binding, side, resource }, count));
    }
  }

  #report({ key, problem }: SyncPass, consumer: KeyState['consumer']): void {
    const { held } = this.#breaker;
    if (held !== this.#held) {
      if (this.#held === 0)
        this.log.error(
          'the server holds back deletes of copies; see the condition Connected of the APIServiceBinding that the field export names',
          {
            copies: held,
          },
        );
      this.#held = held;
      this.#notify.trigger();
    }
    if (!problem) this.problems.clear(key);
    else if (this.problems.set(key, problem) && consumer) {
      recordProblem(this.#deps.events, this.#options.resource, consumer, problem);
    }
  }
}

/** Before the first event of the sources after it. */
const atStart = (callback: () => void): Source => ({
  name: 'start',
  start() {
    callback();
    return Promise.resolve();
  },
});

/** One call, 200 ms after the first `trigger`. */
function coalesce(clock: Clock, callback: () => void): { trigger(): void; stop(): void } {
  let cancel: (() => void) | undefined;
  return {
    trigger() {
      cancel ??= clock.schedule(COALESCE_MS, () => {
        cancel = undefined;
        callback();
      });
    },
    stop() {
      cancel?.();
      cancel = undefined;
    },
  };
}

const COALESCE_MS = 200;
