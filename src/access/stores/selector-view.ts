import { type KubeObject, keyOf, type LabelSelector } from '../../api/object.ts';
import { isRecord, own } from '../../kit/json-value.ts';
import type { SelectorView } from './views.ts';

/** By kind: where the selector is, as a LabelSelector. A Service without one selects nothing. */
const selectorOf: Readonly<Record<SelectorView['kind'], (spec: unknown) => LabelSelector | undefined>> = {
  Service: (spec) => {
    const matchLabels = own(spec, 'selector');
    return isRecord(matchLabels) ? ({ matchLabels } as LabelSelector) : undefined;
  },
  PodDisruptionBudget: (spec) => asSelector(own(spec, 'selector')),
  NetworkPolicy: (spec) => asSelector(own(spec, 'podSelector')),
};

const asSelector = (value: unknown): LabelSelector | undefined =>
  isRecord(value) ? (value as LabelSelector) : undefined;

/** List items come without kind, so the store's resource names it. */
export const viewSelector =
  (kind: SelectorView['kind']) =>
  (object: KubeObject): SelectorView | undefined => {
    const { uid, resourceVersion, namespace, name } = object.metadata;
    if (!uid || !resourceVersion || !namespace) return undefined;
    const selector = selectorOf[kind](object.spec);
    return { key: keyOf({ namespace, name }), uid, resourceVersion, kind, namespace, name, selector };
  };
