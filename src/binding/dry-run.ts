import { type KubeObject, keyOf, type ObjectName, type Resource } from '../api/object.ts';
import { secrets } from '../api/resources.ts';
import { canonicalJson, sha256Hex } from '../kit/canonical-json.ts';
import { CodedError, describe } from '../kit/errors.ts';
import { isRecord } from '../kit/json-value.ts';
import { RecentMap } from '../kit/recent-map.ts';
import { type Client, type DeleteOptions, findObject, type WriteOptions } from '../kube/client.ts';
import { ApiError } from '../kube/errors.ts';
import type { Log } from '../observe/log.ts';

/** Most intentions that are remembered, so that an intention that each retry repeats is printed once. */
const maxPrinted = 10_000;

/**
 * A client that changes nothing. It sends each write as a server-side dry run and prints verb, resource, name, and the changed fields; for
 * Secrets, field names without values. It throws errors of the dry run like those of a write. If a webhook does not support dry runs, the
 * write counts as successful. Reads pass through.
 */
export function dryRunClient(client: Client, log: Log): Client {
  return decorate(client, new Intentions(log));
}

function decorate(client: Client, intentions: Intentions): Client {
  const tried = async (
    intention: Omit<Intention, 'before'>,
    call: () => Promise<KubeObject>,
    assumed: (before: KubeObject | undefined) => KubeObject,
  ): Promise<KubeObject> => {
    const before =
      intention.verb === 'create' ? undefined : await findObject(client, intention.resource, intention.name, {});
    const whole = { ...intention, before };
    try {
      const now = await call();
      intentions.print(whole, now);
      return now;
    } catch (error) {
      if (!isDryRunUnsupported(error)) {
        intentions.printRefusal(whole, error);
        throw error;
      }
      const now = assumed(before);
      intentions.print(whole, now);
      return now;
    }
  };

  const dry = <Options extends WriteOptions>(options: Options | undefined) =>
    ({ ...options, dryRun: true }) as Options & { readonly dryRun: true };
  const sameAs = (object: KubeObject) => () => object;

  return {
    get: (resource, name, options) => client.get(resource, name, options),
    list: (resource, options) => client.list(resource, options),
    isAllowed: (question, options) => client.isAllowed(question, options),
    reviewToken: (token, options) => client.reviewToken(token, options),
    raw: (path, options) => client.raw(path, options),
    create: (resource, object, options) =>
      tried(
        { verb: 'create', resource, name: object.metadata, options },
        () => client.create(resource, object, dry(options)),
        sameAs(object),
      ),
    replace: (resource, object, options) =>
      tried(
        { verb: 'update', resource, name: object.metadata, options },
        () => client.replace(resource, object, dry(options)),
        sameAs(object),
      ),
    apply: (resource, object, options) =>
      tried(
        { verb: 'apply', resource, name: object.metadata, options },
        () => client.apply(resource, object, dry(options)),
        sameAs(object),
      ),
    mergePatch: (resource, name, patch, options) =>
      tried(
        { verb: 'patch', resource, name, options },
        () => client.mergePatch(resource, name, patch, dry(options)),
        (before) => before ?? missing(resource, name),
      ),
    jsonPatch: (resource, name, ops, options) =>
      tried(
        { verb: 'patch', resource, name, options },
        () => client.jsonPatch(resource, name, ops, dry(options)),
        (before) => before ?? missing(resource, name),
      ),
    // A read shows whether the object exists and matches the preconditions.
    async delete(resource, name, options: DeleteOptions = {}) {
      const before = await findObject(client, resource, name, {});
      if (!before) return 'absent';
      const { uid, resourceVersion } = before.metadata;
      if ((options.uid ?? uid) !== uid || (options.resourceVersion ?? resourceVersion) !== resourceVersion) {
        throw new ApiError(
          409,
          'Conflict',
          `${resource.plural} ${keyOf(name)} does not match the uid or resourceVersion to delete`,
        );
      }
      intentions.print({ verb: 'delete', resource, name, options: undefined, before }, undefined);
      return 'deleted';
    },
    createToken: () => Promise.reject(new CodedError('DryRun', 'a dry run creates no token')),
    leaderOnly: (check) => decorate(client.leaderOnly(check), intentions),
    urgent: () => decorate(client.urgent(), intentions),
  };
}

interface Intention {
  readonly verb: 'create' | 'update' | 'apply' | 'patch' | 'delete';
  readonly resource: Resource;
  readonly name: ObjectName;
  readonly options: { readonly subresource?: string } | undefined;
  /** The current object; undefined if there is none. */
  readonly before: KubeObject | undefined;
}

class Intentions {
  readonly #log: Log;
  /** By verb and object: digest of the last printed line. */
  readonly #printed = new RecentMap<string, string>(maxPrinted);

  constructor(log: Log) {
    this.#log = log;
  }

  print({ before, ...intention }: Intention, now: KubeObject | undefined): void {
    const changes = now && changesBetween(before, now, isSecret(intention.resource));
    if (changes && before && changes.length === 0) return;
    this.#once(intention, `would ${intention.verb}`, changes && { changes });
  }

  printRefusal({ before: _, ...intention }: Intention, error: unknown): void {
    // The text of the error may quote values of the Secret.
    const isQuoting = error instanceof ApiError && isSecret(intention.resource);
    this.#once(intention, `would be refused to ${intention.verb}`, {
      error: isQuoting ? `${error.code} ${error.reason}` : describe(error),
    });
  }

  #once(
    { verb, resource, name, options }: Omit<Intention, 'before'>,
    message: string,
    more: Readonly<Record<string, string | readonly string[]>> = {},
  ): void {
    const subresource = options?.subresource;
    const fields = { resource: resource.plural, name: keyOf(name), subresource, ...more };
    const about = canonicalJson([verb, resource.group, fields.resource, fields.name, subresource]);
    const digest = sha256Hex(canonicalJson([message, more]));
    if (this.#printed.get(about) === digest) return;
    this.#printed.set(about, digest);
    this.#log.info(message, fields);
  }
}

const isSecret = ({ group, plural }: Resource): boolean => group === secrets.group && plural === secrets.plural;

/** Whether the API server rejects the dry run because of a webhook with side effects. */
const isDryRunUnsupported = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 400 && /dry[ -]?run/i.test(error.message);

function missing({ plural }: Resource, name: ObjectName): never {
  throw new ApiError(404, 'NotFound', `${plural} ${keyOf(name)} not found`);
}

/** Most lines in one description. */
const maxChanges = 12;
const maxValue = 60;
/** Fields that the API server sets on writes. */
const bookkeeping = new Set(['managedFields', 'resourceVersion', 'generation', 'uid', 'creationTimestamp']);

/**
 * The changed fields of `now`, one line each: `spec.size: 1 → 2`, `metadata.labels.app: "a" added`. After 12 lines, one more line has the
 * number of the rest. With `isSecret`, lines have no values.
 */
export function changesBetween(before: KubeObject | undefined, now: KubeObject, isSecret: boolean): string[] {
  const changes: string[] = [];
  compare(relevant(before), relevant(now), '', (path, was, is) => {
    if (isSecret) changes.push(`${path} ${was === undefined ? 'added' : is === undefined ? 'removed' : 'changed'}`);
    else if (was === undefined) changes.push(`${path}: ${shown(is)} added`);
    else if (is === undefined) changes.push(`${path}: ${shown(was)} removed`);
    else changes.push(`${path}: ${shown(was)} → ${shown(is)}`);
  });
  const more = changes.length - maxChanges;
  return more > 0 ? [...changes.slice(0, maxChanges), `${more} more`] : changes;
}

function relevant(object: KubeObject | undefined): Record<string, unknown> {
  if (!object) return {};
  const { apiVersion: _, kind: __, metadata, ...fields } = object;
  const { name: ___, namespace: ____, ...kept } = metadata;
  const own = Object.fromEntries(Object.entries(kept).filter(([field]) => !bookkeeping.has(field)));
  return { metadata: own, ...fields };
}

function compare(
  was: unknown,
  is: unknown,
  path: string,
  report: (path: string, was: unknown, is: unknown) => void,
): void {
  if (!isRecord(was) && !isRecord(is)) {
    if (JSON.stringify(was) !== JSON.stringify(is)) report(path, was, is);
    return;
  }
  if ((was !== undefined && !isRecord(was)) || (is !== undefined && !isRecord(is))) {
    report(path, was, is);
    return;
  }
  const fields = new Set([...Object.keys(was ?? {}), ...Object.keys(is ?? {})]);
  if (fields.size === 0 && was === undefined && path !== '') report(path, was, is);
  for (const field of fields) {
    const at = (object: unknown) => (isRecord(object) && Object.hasOwn(object, field) ? object[field] : undefined);
    compare(at(was), at(is), path === '' ? field : `${path}.${field}`, report);
  }
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'null';
  return text.length > maxValue ? `${text.slice(0, maxValue)}…` : text;
}
