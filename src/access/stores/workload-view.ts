import { type KubeObject, keyOf, type LabelSelector } from '../../api/object.ts';
import { isRecord, own } from '../../kit/json-value.ts';
import type { WorkloadView } from './views.ts';

/** List items come without kind, so the store's resource names it. */
export const viewWorkload =
  (apiVersion: string, kind: string) =>
  (object: KubeObject): WorkloadView | undefined => {
    const { uid, resourceVersion, namespace, name } = object.metadata;
    if (!uid || !resourceVersion || !namespace) return undefined;
    const podTemplate = own(object.spec, 'template');
    const selector = own(object.spec, 'selector');
    return {
      key: keyOf({ namespace, name }),
      uid,
      resourceVersion,
      apiVersion,
      kind,
      namespace,
      name,
      selector: isRecord(selector) ? (selector as LabelSelector) : undefined,
      podTemplate: isRecord(podTemplate) ? podTemplate : {},
    };
  };
