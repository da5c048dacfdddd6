import { apiServiceExports, bindFieldManager, boundSchemas } from '../../api/binding/names.ts';
import type { Resource } from '../../api/object.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Client } from '../../kube/client.ts';
import { ApiError, isConflict, isNotFound } from '../../kube/errors.ts';
import { type ObjectVersion, versionOf, WriteThroughCache } from '../../kube/write-through-cache.ts';
import { type BindFinding, sameConditions, setConditionsAndReady } from '../conditions.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import type { BoundSchemaView, CommonView, CrdView, ExportView } from '../stores/views.ts';
import { boundSchemaStatusPatch } from './bound-schema-status.ts';

/** All that a provider is told in the status of its objects: each write only when it says something new, and guarded by what it was reasoned from. */
export class ExportWriter {
  readonly #client: Client;
  readonly #clock: Clock;
  readonly #exports: WriteThroughCache<ObjectVersion>;
  readonly #schemas: WriteThroughCache<ObjectVersion>;

  constructor({ client, stores }: Pick<ProviderSession, 'client' | 'stores'>, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
    const uidOf = ({ uid }: ObjectVersion): string => uid;
    this.#exports = new WriteThroughCache<ObjectVersion>({ watched: (key) => stores.exports.get(key), uidOf, clock });
    this.#schemas = new WriteThroughCache<ObjectVersion>({ watched: (key) => stores.schemas.get(key), uidOf, clock });
  }

  async export(exported: ExportView, findings: readonly BindFinding[], signal: AbortSignal): Promise<void> {
    const conditions = setConditionsAndReady(exported.conditions, findings, this.#clock.now());
    if (sameConditions(exported.conditions, conditions)) return;
    await this.#write(apiServiceExports, this.#exports, exported, { conditions }, signal);
  }

  /** Why the provider does not take the status, if it does not and never will. */
  async schema(schema: BoundSchemaView, crd: CrdView, signal: AbortSignal): Promise<string | undefined> {
    const status = boundSchemaStatusPatch(schema, crd, this.#clock.now());
    if (!status) return undefined;
    try {
      await this.#write(boundSchemas, this.#schemas, schema, status, signal);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 422) throw error;
      return `the status of BoundSchema ${schema.name} is refused: ${error.message}`;
    }
    return undefined;
  }

  /** Whoever changed the object at the same time, or deleted it, brings it back. */
  async #write(
    resource: Resource,
    written: WriteThroughCache<ObjectVersion>,
    view: CommonView & { readonly namespace: string },
    status: object,
    signal: AbortSignal,
  ): Promise<void> {
    if (written.isStale(view.key, view)) return;
    const { key, namespace, name, uid, resourceVersion } = view;
    const patch = { metadata: { uid, resourceVersion }, status };
    const options = { subresource: 'status', fieldManager: bindFieldManager, signal };
    try {
      await written.call(key, async () =>
        versionOf(await this.#client.mergePatch(resource, { namespace, name }, patch, options)),
      );
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error)) throw error;
    }
  }
}
