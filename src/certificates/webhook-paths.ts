import type { Clock } from '../kit/clock.ts';
import { matchesAny, type PathSegment, splitPath } from './path-segment.ts';
import { propagationMs } from './rotation.ts';
import type { CertificateStores, ConfigurationView } from './stores.ts';

/**
 * Which paths a replica answers: those with the segment in the Secret, or one that a configuration
 * has or had in the last 10 s. Without a segment, if a configuration has or had such a path and the
 * Secret has no segment or `unsegmentedUntilMs` has not passed; and always while a webhook has a
 * `url`, to which the server appends none.
 */
export class WebhookPaths {
  readonly #clock: Clock;
  readonly #stores: CertificateStores;
  readonly #unsubscribe: readonly (() => void)[];
  /** Deleting the Secret does not clear it. */
  #segment: PathSegment | undefined;
  /** A version without segments wrote the Secret. */
  #secretLacksSegment = false;
  /** By segment ('': none): until when it counts as configured, monotonic; Infinity while it is. */
  readonly #configuredUntil = new Map<string, number>();

  constructor(stores: CertificateStores, clock: Clock) {
    this.#clock = clock;
    this.#stores = stores;
    this.#unsubscribe = [
      stores.secret.subscribe((event) => {
        if (event.type === 'deleted' || !event.now.ours) return;
        this.#segment = event.now.segment ?? this.#segment;
        this.#secretLacksSegment = this.#segment === undefined;
      }),
      ...stores.configurations.map((store) => store.subscribe(() => this.#recordSegments())),
    ];
  }

  close(): void {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
  }

  /** `path` without its segment, if that is accepted; no webhook need have the path. */
  readonly routeOf = (path: string): string | undefined => {
    const { route, segment } = splitPath(path);
    const accepted = segment === '' ? this.#answersUnsegmented() : matchesAny(segment, this.#segments());
    return accepted ? route : undefined;
  };

  *#segments(): Iterable<string> {
    if (this.#segment) yield this.#segment.text;
    for (const segment of this.#configuredUntil.keys()) if (this.#isConfigured(segment)) yield segment;
  }

  #answersUnsegmented(): boolean {
    if (this.#stores.configurations.some((store) => [...store.list()].some(isCalledByUrl))) return true;
    if (!this.#isConfigured('')) return false;
    return this.#secretLacksSegment || this.#clock.now() < (this.#segment?.unsegmentedUntilMs ?? 0);
  }

  /** Or had it in the last 10 s. */
  #isConfigured(segment: string): boolean {
    return this.#clock.monotonic() < (this.#configuredUntil.get(segment) ?? 0);
  }

  #recordSegments(): void {
    const nowMs = this.#clock.monotonic();
    const current = new Set<string>();
    for (const store of this.#stores.configurations) {
      for (const { endpoints } of store.list()) {
        for (const { path } of endpoints) if (path !== undefined) current.add(splitPath(path).segment);
      }
    }
    for (const [segment, untilMs] of this.#configuredUntil) {
      if (current.has(segment)) continue;
      // API servers may not have received the change yet.
      if (untilMs === Number.POSITIVE_INFINITY) this.#configuredUntil.set(segment, nowMs + propagationMs);
      else if (untilMs <= nowMs) this.#configuredUntil.delete(segment);
    }
    for (const segment of current) this.#configuredUntil.set(segment, Number.POSITIVE_INFINITY);
  }
}

const isCalledByUrl = ({ endpoints }: ConfigurationView): boolean => endpoints.some(({ path }) => path === '');
