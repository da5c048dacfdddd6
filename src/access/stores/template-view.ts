import type { Condition } from '../../api/object.ts';
import { type KubeObject, keyOf } from '../../api/object.ts';
import type { Read } from '../../api/schema/read.ts';
import { parseTime } from '../../kit/clock.ts';
import type { TemplateView } from './views.ts';

interface Template<Spec> {
  readonly spec: Spec;
  readonly status?: {
    readonly conditions?: readonly Condition[];
    readonly ready?: boolean;
    readonly authorSignature?: string;
  };
}

/** The projection of a template by its kind's guard; one that does not pass it counts as absent, for nobody could act on it. */
export const viewTemplate =
  <Spec>(read: (object: unknown) => Read<Template<Spec>>) =>
  (object: KubeObject): TemplateView<Spec> | undefined => {
    const { uid, resourceVersion, namespace, name, generation = 0, creationTimestamp = '' } = object.metadata;
    const template = read(object);
    if (!uid || !resourceVersion || !namespace || !template.ok) return undefined;
    return {
      key: keyOf({ namespace, name }),
      uid,
      resourceVersion,
      namespace,
      name,
      generation,
      spec: template.value.spec,
      conditions: template.value.status?.conditions ?? [],
      ready: template.value.status?.ready,
      createdAtMs: parseTime(creationTimestamp) ?? 0,
      authorSignature: template.value.status?.authorSignature,
    };
  };
