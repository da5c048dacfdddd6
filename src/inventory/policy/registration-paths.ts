import type { ComponentReconciler } from '../../api/inventory/component-reconciler.ts';
import { kubeconfigOutput, outputsOf } from '../../api/inventory/names.ts';
import { isPointer, isWithin, type JsonPointer, overlap, pointerOf } from '../../kit/json-pointer.ts';

type Paths = Pick<ComponentReconciler['spec'], 'reads' | 'writes' | 'kubeconfig'>;

/** What a component owns: nothing else in an entry may change by its hand. */
export function writesOf(name: string, { writes }: Paths): readonly JsonPointer[] {
  return writes === undefined ? [outputsOf(name)] : writes.filter(isPointer);
}

/** What its runs depend on: as declared, and what every component reads. */
export function readsOf(name: string, spec: Paths): readonly JsonPointer[] {
  return [
    ...new Set<JsonPointer>([
      pointerOf('spec', 'components', name, 'config'),
      pointerOf('spec', 'components', name, 'enabled'),
      '/spec/mode',
      ...(kubeconfigRole(name, spec) === 'read' ? [`${kubeconfigOutput}/version` as const] : []),
      ...spec.reads.filter(isPointer),
    ]),
  ];
}

/** Whether it makes the kubeconfig of the cluster, uses it, or neither. */
export function kubeconfigRole(name: string, spec: Paths): 'produce' | 'read' | 'none' {
  if (writesOf(name, spec).some((path) => isWithin(path, kubeconfigOutput))) return 'produce';
  return spec.kubeconfig;
}

/** The first of its declared reads that its own writes could change: it would wake itself for ever. */
export function ownOutputRead(name: string, spec: Paths): JsonPointer | undefined {
  const writes = writesOf(name, spec);
  return spec.reads.filter(isPointer).find((read) => writes.some((write) => overlap(read, write)));
}
