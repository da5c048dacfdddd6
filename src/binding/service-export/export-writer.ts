import { apiServiceExports, bindFieldManager, boundSchemas } from '../../api/binding/names.ts';
import type { Resource } from '../../api/object.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Client } from '../../kube/client.ts';
import { ApiError, isConflict, isNotFound } from '../../kube/errors.ts';
import { type BindFinding, sameConditions, setConditionsAndReady } from '../conditions.ts';
import { UnseenWrites } from '../service-binding/unseen-writes.ts';
import type { BoundSchemaView, CommonView, CrdView, ExportView } from '../stores/views.ts';
import { boundSchemaStatusPatch } from './bound-schema-status.ts';

/** All that a provider is told in the status of its objects: each write only when it says something new, and guarded by what it was reasoned from. */
export class ExportWriter {
  readonly #client: Client;
  readonly #clock: Clock;
  readonly #unseen = new UnseenWrites();

  constructor({ client, clock }: { readonly client: Client; readonly clock: Clock }) {
    this.#client = client;
    this.#clock = clock;
  }

  async export(exported: ExportView, findings: readonly BindFinding[], signal: AbortSignal): Promise<void> {
    const conditions = setConditionsAndReady(exported.conditions, findings, this.#clock.now());
    if (sameConditions(exported.conditions, conditions)) return;
    await this.#write(apiServiceExports, exported, { conditions }, signal);
  }

  /** Why the provider does not take the status, if it does not and never will. */
  async schema(schema: BoundSchemaView, crd: CrdView, signal: AbortSignal): Promise<string | undefined> {
    const status = boundSchemaStatusPatch(schema, crd, this.#clock.now());
    if (!status) return undefined;
    try {
      await this.#write(boundSchemas, schema, status, signal);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 422) throw error;
      return `the status of BoundSchema ${schema.name} is refused: ${error.message}`;
    }
    return undefined;
  }

  /** Whoever changed the object at the same time, or deleted it, brings it back. */
  async #write(
    resource: Resource,
    view: CommonView & { readonly namespace: string },
    status: object,
    signal: AbortSignal,
  ): Promise<void> {
    if (this.#unseen.hides(view)) return;
    const { namespace, name, uid, resourceVersion } = view;
    const patch = { metadata: { uid, resourceVersion }, status };
    const options = { subresource: 'status', fieldManager: bindFieldManager, signal };
    try {
      this.#unseen.wrote(await this.#client.mergePatch(resource, { namespace, name }, patch, options));
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error)) throw error;
    }
  }
}
