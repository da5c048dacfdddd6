import type { Clock } from '../kit/clock.ts';
import { isOneOf, type PathSegment, splitPath } from './path-segment.ts';
import { settleMs } from './rotation.ts';
import type { CertificateStores, ConfigurationView } from './stores.ts';

/**
 * Which paths a replica answers: those that end with the segment of this installation, and those that the webhook configurations have
 * or had a moment ago, so that a segment can be replaced without failing a call. Paths without one only while the Secret says so, or
 * while a configuration calls a webhook by `url`: those are written by hand, and no segment is appended to them.
 */
export class WebhookPaths {
  readonly #clock: Clock;
  readonly #stores: CertificateStores;
  readonly #unsubscribe: readonly (() => void)[];
  /** The last that was read: a Secret that is gone takes nothing away. */
  #segment: PathSegment | undefined;
  /** The Secret was there, ours, and had no segment: its writer is of a version that knows none. */
  #unaware = false;
  /** Segments in the configurations, and until when (monotonic) they count. */
  readonly #carried = new Map<string, number>();

  constructor(stores: CertificateStores, clock: Clock) {
    this.#clock = clock;
    this.#stores = stores;
    this.#unsubscribe = [
      stores.secret.subscribe((event) => {
        if (event.type === 'deleted' || !event.now.ours) return;
        this.#segment = event.now.segment ?? this.#segment;
        this.#unaware = this.#segment === undefined;
      }),
      ...stores.configurations.map((store) => store.subscribe(() => this.#lookAround())),
    ];
  }

  close(): void {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
  }

  /** The route that answers `path`; undefined when none may. */
  readonly routeOf = (path: string): string | undefined => {
    const { route, segment } = splitPath(path);
    const accepted = segment === '' ? this.#answersFixed() : isOneOf(segment, this.#segments());
    return accepted ? route : undefined;
  };

  *#segments(): Iterable<string> {
    if (this.#segment) yield this.#segment.text;
    for (const segment of this.#carried.keys()) if (this.#isCarried(segment)) yield segment;
  }

  #answersFixed(): boolean {
    if (this.#stores.configurations.some((store) => [...store.list()].some(isCalledByUrl))) return true;
    if (!this.#isCarried('')) return false;
    return this.#unaware || this.#clock.now() < (this.#segment?.fixedUntilMs ?? 0);
  }

  #isCarried(segment: string): boolean {
    return this.#clock.monotonic() < (this.#carried.get(segment) ?? 0);
  }

  #lookAround(): void {
    const nowMs = this.#clock.monotonic();
    const seen = new Set<string>();
    for (const store of this.#stores.configurations) {
      for (const { webhooks } of store.list()) {
        for (const { path } of webhooks) seen.add(splitPath(path).segment);
      }
    }
    for (const [segment, untilMs] of this.#carried) {
      if (seen.has(segment)) continue;
      // API servers may not have heard of the change yet.
      if (untilMs === Number.POSITIVE_INFINITY) this.#carried.set(segment, nowMs + settleMs);
      else if (untilMs <= nowMs) this.#carried.delete(segment);
    }
    for (const segment of seen) this.#carried.set(segment, Number.POSITIVE_INFINITY);
  }
}

const isCalledByUrl = ({ webhooks }: ConfigurationView): boolean => webhooks.some(({ path }) => path === '');
