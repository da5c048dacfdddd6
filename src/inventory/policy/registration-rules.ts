import type { ComponentReconciler } from '../../api/inventory/component-reconciler.ts';
import { kubeconfigOutput, outputsOf } from '../../api/inventory/names.ts';
import { isPointer, isWithin, type JsonPointer, overlap, pointerOf } from '../../kit/json-pointer.ts';
import type { Violation } from './violation.ts';

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

/** A registration as its rules look at it. */
export interface RegistrationPaths {
  readonly name: string;
  readonly spec: Pick<ComponentReconciler['spec'], 'reads' | 'writes' | 'kubeconfig' | 'modes'>;
}

/** The first rule that a registration breaks, by itself or beside the others. */
export function registrationViolation(
  { name, spec }: RegistrationPaths,
  others: Iterable<RegistrationPaths>,
): Violation | undefined {
  const ownRead = ownOutputRead(name, spec);
  if (ownRead !== undefined) {
    return {
      code: 'OwnOutputRead',
      message: `reads ${ownRead}, which it writes itself: each of its runs would be the reason for the next; read what others write`,
      field: 'spec.reads',
      status: 422,
    };
  }
  const writes = writesOf(name, spec);
  for (const other of others) {
    if (other.name === name || !other.spec.modes.some((mode) => spec.modes.includes(mode))) continue;
    for (const path of writesOf(other.name, other.spec)) {
      const taken = writes.find((write) => overlap(write, path));
      if (taken === undefined) continue;
      return {
        code: 'PathTaken',
        message: `${taken} would belong to ${other.name} as well, which owns ${path} in entries of the same mode; a path has one owner`,
        field: spec.writes === undefined ? 'metadata.name' : 'spec.writes',
        status: 422,
      };
    }
  }
  return undefined;
}

/** Of a deletion: `run` names one that still needs the component. */
export const hasRuns = (name: string, run: string): Violation => ({
  code: 'HasRuns',
  message: `component ${name} still has runs, ${run} among them: what it has made would never be torn down; delete the entries, or let go of it there with the annotation abandon.inventory.drawbridge.dev/${name} first`,
  status: 422,
});
