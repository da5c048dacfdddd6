import { X509Certificate } from 'node:crypto';
import type { ComponentReconciler } from '../../api/inventory/component-reconciler.ts';
import { abandonAnnotation, kubeconfigOutput, outputsOf } from '../../api/inventory/names.ts';
import type { FieldError } from '../../api/schema/read.ts';
import { describe } from '../../kit/errors.ts';
import { isPointer, isWithin, type JsonPointer, overlap, pointerOf } from '../../kit/json-pointer.ts';
import { compileSelector } from '../../kit/label-selector.ts';
import type { Violation } from './violation.ts';

type Paths = Pick<ComponentReconciler['spec'], 'reads' | 'writes' | 'kubeconfig'>;

/** Paths that a component owns; default `/status/outputs/NAME`. Drops invalid pointers. */
export function writesOf(name: string, { writes }: Paths): readonly JsonPointer[] {
  return writes === undefined ? [outputsOf(name)] : writes.filter(isPointer);
}

/** Paths whose changes start runs: the declared reads and the implied ones. */
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

/** `produce` if the component owns a path within `/status/outputs/kubeconfig`. */
export function kubeconfigRole(name: string, spec: Paths): 'produce' | 'read' | 'none' {
  if (writesOf(name, spec).some((path) => isWithin(path, kubeconfigOutput))) return 'produce';
  return spec.kubeconfig;
}

/** A path that the component reads and writes: it could trigger itself forever. */
export function ownOutputRead(name: string, spec: Paths): JsonPointer | undefined {
  const writes = writesOf(name, spec);
  return spec.reads.filter(isPointer).find((read) => writes.some((write) => overlap(read, write)));
}

/** A value that the schema accepts but the server cannot use. `field` is relative to `spec`. */
export function unusableField({
  selector = {},
  caBundle,
}: Pick<ComponentReconciler['spec'], 'selector' | 'caBundle'>): FieldError | undefined {
  const compiled = compileSelector(selector);
  if ('error' in compiled) return { field: 'selector', message: compiled.error };
  if (caBundle === undefined) return undefined;
  try {
    // Node.js reports no error: an empty text trusts every public CA, other text trusts none.
    new X509Certificate(caBundle);
    return undefined;
  } catch (error) {
    const message = `contains no PEM certificate that can be parsed (${describe(error)}); set it to the CA certificate that signed the certificate of the endpoint`;
    return { field: 'caBundle', message };
  }
}

export interface RegistrationPaths {
  readonly name: string;
  readonly spec: Pick<ComponentReconciler['spec'], 'reads' | 'writes' | 'kubeconfig' | 'modes'>;
}

/**
 * `PathTaken`: the component reads a path that it writes, or one of `others`, with a mode in
 * common, owns an overlapping path.
 */
export function registrationViolation(
  { name, spec }: RegistrationPaths,
  others: Iterable<RegistrationPaths>,
): Violation | undefined {
  const ownRead = ownOutputRead(name, spec);
  if (ownRead !== undefined) {
    return {
      code: 'PathTaken',
      message: `reads ${ownRead}, which the component writes itself; a component may only read paths that it does not own, or each run would trigger the next; remove it from reads`,
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
        message: `${taken} overlaps ${path}, which component ${other.name} owns in entries of the same mode; each path must have one owner; ${spec.writes === undefined ? 'set spec.writes to other paths, or rename the component' : 'choose another path'}`,
        field: spec.writes === undefined ? 'metadata.name' : 'spec.writes',
        status: 422,
      };
    }
  }
  return undefined;
}

/** In the message of `hasRunsViolation`. */
export const maxNamedEntries = 3;

/** Denies the deletion of a registration with runs. `entries`: `NAMESPACE/NAME`, at least one. */
export function hasRunsViolation(name: string, entries: readonly string[]): Violation {
  const named = entries.slice(0, maxNamedEntries).join(', ');
  const [namespace, entry] = (entries[0] ?? '').split('/');
  return {
    code: 'HasRuns',
    message: `component ${name} still has runs for ${named}${entries.length > maxNamedEntries ? ', and more' : ''}; without the registration, the server cannot tear down what the component created for these entries; delete these entries, or abandon the component in each, which leaves what it created: kubectl annotate clusterinventory ${entry} -n ${namespace} ${abandonAnnotation(name)}=REASON`,
    status: 422,
  };
}
