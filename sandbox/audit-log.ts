import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/** One API call, as the API server logged it. */
export interface AuditCall {
  readonly user: string;
  readonly groups: readonly string[];
  /** The impersonated user, if the call impersonated one. */
  readonly impersonated: string | undefined;
  /** `get`, `list`, `watch`, `create`, ... */
  readonly verb: string;
  /** Plural, with the subresource behind a slash (`pods/exec`); empty for calls such as `/readyz`. */
  readonly resource: string;
  readonly apiGroup: string;
  readonly namespace: string;
  readonly name: string;
  readonly code: number;
  readonly userAgent: string;
  readonly uri: string;
  /** RFC 3339, when the call arrived. */
  readonly time: string;
}

export interface AuditFilter {
  readonly user?: string;
  /** Only calls logged after this position. */
  readonly since?: number;
  readonly verbs?: readonly string[];
  readonly resources?: readonly string[];
}

export interface AuditCount {
  readonly user: string;
  readonly verb: string;
  readonly resource: string;
  readonly count: number;
}

/**
 * Reads a plane's audit log. The API server writes the line of a call before it ends the answer, so the next read includes
 * every answered call. A watch counts as one call, from its start.
 */
export class AuditLog {
  readonly #path: string;
  readonly #calls: { readonly at: number; readonly call: AuditCall }[] = [];
  readonly #seen = new Set<string>();
  #read = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /** The current end of the log, in bytes; pass it to `calls` as `since`. */
  mark(): number {
    this.#catchUp();
    return this.#read;
  }

  /** The calls that match every part of the filter, oldest first. */
  calls(filter: AuditFilter = {}): AuditCall[] {
    this.#catchUp();
    const since = filter.since ?? 0;
    return this.#calls.filter(({ at, call }) => at >= since && matches(call, filter)).map(({ call }) => call);
  }

  /** The number of calls by user, verb, and resource, most frequent first. */
  counts(filter: AuditFilter = {}): AuditCount[] {
    const counts = new Map<string, AuditCount>();
    for (const { user, verb, resource } of this.calls(filter)) {
      const key = JSON.stringify([user, verb, resource]);
      counts.set(key, { user, verb, resource, count: (counts.get(key)?.count ?? 0) + 1 });
    }
    return [...counts.values()].sort((a, b) => b.count - a.count);
  }

  #catchUp(): void {
    const fresh = readFrom(this.#path, this.#read);
    // The next read gets a line that is still being written.
    const whole = fresh.subarray(0, fresh.lastIndexOf(0x0a) + 1);
    let at = this.#read;
    for (const line of whole.toString('utf8').split('\n')) {
      const event = line === '' ? undefined : parseAuditEvent(line);
      // A long-running call is logged at its start and at its end, under one id.
      if (event !== undefined && !this.#seen.has(event.id)) {
        this.#seen.add(event.id);
        this.#calls.push({ at, call: event.call });
      }
      at += Buffer.byteLength(line) + 1;
    }
    this.#read += whole.length;
  }
}

/** Reads one line of the log; undefined if it is no audit event. */
export function parseAuditEvent(line: string): { readonly id: string; readonly call: AuditCall } | undefined {
  let event: RawEvent;
  try {
    event = JSON.parse(line) as RawEvent;
  } catch {
    return undefined;
  }
  if (typeof event?.auditID !== 'string') return undefined;
  const ref = event.objectRef ?? {};
  return {
    id: event.auditID,
    call: {
      user: event.user?.username ?? '',
      groups: event.user?.groups ?? [],
      impersonated: event.impersonatedUser?.username,
      verb: event.verb ?? '',
      resource: ref.subresource ? `${ref.resource ?? ''}/${ref.subresource}` : (ref.resource ?? ''),
      apiGroup: ref.apiGroup ?? '',
      namespace: ref.namespace ?? '',
      name: ref.name ?? '',
      code: event.responseStatus?.code ?? 0,
      userAgent: event.userAgent ?? '',
      uri: event.requestURI ?? '',
      time: event.requestReceivedTimestamp ?? '',
    },
  };
}

interface RawEvent {
  readonly auditID?: string;
  readonly verb?: string;
  readonly requestURI?: string;
  readonly userAgent?: string;
  readonly requestReceivedTimestamp?: string;
  readonly user?: { readonly username?: string; readonly groups?: string[] };
  readonly impersonatedUser?: { readonly username?: string };
  readonly responseStatus?: { readonly code?: number };
  readonly objectRef?: {
    readonly resource?: string;
    readonly subresource?: string;
    readonly apiGroup?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
}

function matches(call: AuditCall, { user, verbs, resources }: AuditFilter): boolean {
  return (
    (user === undefined || call.user === user) &&
    (verbs === undefined || verbs.includes(call.verb)) &&
    (resources === undefined || resources.includes(call.resource))
  );
}

function readFrom(path: string, offset: number): Buffer {
  const file = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(Math.max(0, fstatSync(file).size - offset));
    return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, offset));
  } finally {
    closeSync(file);
  }
}
