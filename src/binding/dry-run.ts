import { type KubeObject, keyOf, type ObjectName, type Resource } from '../api/object.ts';
import { secrets } from '../api/resources.ts';
import { canonicalJson, sha256Hex } from '../kit/canonical-json.ts';
import { CodedError, describe } from '../kit/errors.ts';
import { isRecord } from '../kit/json-value.ts';
import { RecentMap } from '../kit/recent-map.ts';
import { type Client, type DeleteOptions, findObject, type WriteOptions } from '../kube/client.ts';
import { ApiError, isDryRunUnsupported } from '../kube/errors.ts';
import type { Log } from '../observe/log.ts';

/** So that a retried write is logged once. */
const maxPrinted = 10_000;

/**
 * A client that changes nothing: writes are server-side dry runs; a delete only checks its
 * preconditions. Logs the changed fields, for Secrets without values. Where a webhook supports no
 * dry runs, the write counts as successful. `createToken` rejects with CodedError `DryRun`.
 */
export function dryRunClient(client: Client, log: Log): Client {
  return decorate(client, new WritePrinter(log));
}

function decorate(client: Client, printer: WritePrinter): Client {
  const dryRun = async (
    write: Omit<PlannedWrite, 'before'>,
    call: () => Promise<KubeObject>,
    assumedResult: (before: KubeObject | undefined) => KubeObject,
  ): Promise<KubeObject> => {
    const before = write.verb === 'create' ? undefined : await findObject(client, write.resource, write.name, {});
    const planned = { ...write, before };
    try {
      const result = await call();
      printer.print(planned, result);
      return result;
    } catch (error) {
      if (!isDryRunUnsupported(error)) {
        printer.printRejection(planned, error);
        throw error;
      }
      const result = assumedResult(before);
      printer.print(planned, result);
      return result;
    }
  };

  const withDryRun = <Options extends WriteOptions>(options: Options | undefined) =>
    ({ ...options, dryRun: true }) as Options & { readonly dryRun: true };
  const assume = (object: KubeObject) => () => object;

  return {
    get: (resource, name, options) => client.get(resource, name, options),
    list: (resource, options) => client.list(resource, options),
    isAllowed: (question, options) => client.isAllowed(question, options),
    reviewToken: (token, options) => client.reviewToken(token, options),
    raw: (path, options) => client.raw(path, options),
    create: (resource, object, options) =>
      dryRun(
        { verb: 'create', resource, name: object.metadata, options },
        () => client.create(resource, object, withDryRun(options)),
        assume(object),
      ),
    replace: (resource, object, options) =>
      dryRun(
        { verb: 'update', resource, name: object.metadata, options },
        () => client.replace(resource, object, withDryRun(options)),
        assume(object),
      ),
    apply: (resource, object, options) =>
      dryRun(
        { verb: 'apply', resource, name: object.metadata, options },
        () => client.apply(resource, object, withDryRun(options)),
        assume(object),
      ),
    mergePatch: (resource, name, patch, options) =>
      dryRun(
        { verb: 'patch', resource, name, options },
        () => client.mergePatch(resource, name, patch, withDryRun(options)),
        (before) => before ?? missing(resource, name),
      ),
    jsonPatch: (resource, name, ops, options) =>
      dryRun(
        { verb: 'patch', resource, name, options },
        () => client.jsonPatch(resource, name, ops, withDryRun(options)),
        (before) => before ?? missing(resource, name),
      ),
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
      printer.print({ verb: 'delete', resource, name, options: undefined, before }, undefined);
      return 'deleted';
    },
    createToken: () => Promise.reject(new CodedError('DryRun', 'a dry run creates no token')),
    leaderOnly: (check) => decorate(client.leaderOnly(check), printer),
    urgent: () => decorate(client.urgent(), printer),
  };
}

interface PlannedWrite {
  readonly verb: 'create' | 'update' | 'apply' | 'patch' | 'delete';
  readonly resource: Resource;
  readonly name: ObjectName;
  readonly options: { readonly subresource?: string } | undefined;
  readonly before: KubeObject | undefined;
}

/** Logs planned writes; a repeated one only if its line has changed. */
class WritePrinter {
  readonly #log: Log;
  readonly #printed = new RecentMap<string, string>(maxPrinted);

  constructor(log: Log) {
    this.#log = log;
  }

  /** `result`: the object after the write, or none after a delete. Logs only changes. */
  print({ before, ...write }: PlannedWrite, result: KubeObject | undefined): void {
    const changes = result && changesBetween(before, result, isSecret(write.resource));
    if (changes && before && changes.length === 0) return;
    this.#once(write, `would ${write.verb}`, changes && { changes });
  }

  printRejection({ before: _, ...write }: PlannedWrite, error: unknown): void {
    // The API server's message may quote values.
    const mayQuoteSecret = error instanceof ApiError && isSecret(write.resource);
    this.#once(write, `${write.verb} would fail`, {
      error: mayQuoteSecret ? `${error.code} ${error.reason}` : describe(error),
    });
  }

  #once(
    { verb, resource, name, options }: Omit<PlannedWrite, 'before'>,
    message: string,
    more: Readonly<Record<string, string | readonly string[]>> = {},
  ): void {
    const subresource = options?.subresource;
    const fields = { resource: resource.plural, name: keyOf(name), subresource, ...more };
    const key = canonicalJson([verb, resource.group, fields.resource, fields.name, subresource]);
    const digest = sha256Hex(canonicalJson([message, more]));
    if (this.#printed.get(key) === digest) return;
    this.#printed.set(key, digest);
    this.#log.info(message, fields);
  }
}

const isSecret = ({ group, plural }: Resource): boolean => group === secrets.group && plural === secrets.plural;

function missing({ plural }: Resource, name: ObjectName): never {
  throw new ApiError(404, 'NotFound', `${plural} ${keyOf(name)} not found`);
}

const maxChanges = 12;
const maxValueLength = 60;
const serverFields = new Set(['managedFields', 'resourceVersion', 'generation', 'uid', 'creationTimestamp']);

/** One line each, such as `spec.size: 1 → 2`; of a Secret without values. */
export function changesBetween(before: KubeObject | undefined, after: KubeObject, isSecret: boolean): string[] {
  const changes: string[] = [];
  compare(comparableFields(before), comparableFields(after), '', (path, from, to) => {
    if (from === undefined) changes.push(isSecret ? `${path} added` : `${path}: ${formatValue(to)} added`);
    else if (to === undefined) changes.push(isSecret ? `${path} removed` : `${path}: ${formatValue(from)} removed`);
    else changes.push(isSecret ? `${path} changed` : `${path}: ${formatValue(from)} → ${formatValue(to)}`);
  });
  const more = changes.length - maxChanges;
  return more > 0 ? [...changes.slice(0, maxChanges), `${more} more`] : changes;
}

/** Without identity and the metadata that the API server sets. */
function comparableFields(object: KubeObject | undefined): Record<string, unknown> {
  if (!object) return {};
  const { apiVersion: _, kind: __, metadata, ...fields } = object;
  const { name: ___, namespace: ____, ...kept } = metadata;
  const comparable = Object.fromEntries(Object.entries(kept).filter(([field]) => !serverFields.has(field)));
  return { metadata: comparable, ...fields };
}

/** Reports each path at which the values differ; lists are compared as a whole. */
function compare(
  from: unknown,
  to: unknown,
  path: string,
  report: (path: string, from: unknown, to: unknown) => void,
): void {
  if (!isRecord(from) && !isRecord(to)) {
    if (JSON.stringify(from) !== JSON.stringify(to)) report(path, from, to);
    return;
  }
  if ((from !== undefined && !isRecord(from)) || (to !== undefined && !isRecord(to))) {
    report(path, from, to);
    return;
  }
  const fields = new Set([...Object.keys(from ?? {}), ...Object.keys(to ?? {})]);
  if (fields.size === 0 && from === undefined && path !== '') report(path, from, to);
  for (const field of fields) {
    const valueIn = (object: unknown) => (isRecord(object) && Object.hasOwn(object, field) ? object[field] : undefined);
    compare(valueIn(from), valueIn(to), path === '' ? field : `${path}.${field}`, report);
  }
}

function formatValue(value: unknown): string {
  const text = JSON.stringify(value) ?? 'null';
  return text.length > maxValueLength ? `${text.slice(0, maxValueLength)}…` : text;
}
