import type { ControllerTargetMutationConfig } from '../../api/access/mutation-config.ts';
import { quote } from '../../kit/errors.ts';
import { isRecord, type JsonObject, own, valueWeight } from '../../kit/json-value.ts';
import type { Violation } from '../policy/policy.ts';
import { applyJsonPatch } from './json-patch.ts';
import { PlanBudget } from './plan-budget.ts';
import { capResources, type ResourceCaps } from './resource-caps.ts';

export interface PodTemplate extends JsonObject {
  metadata: JsonObject;
  spec: JsonObject & { containers: JsonObject[] };
}

export type MutatedTemplate =
  | {
      readonly template: PodTemplate;
      /** One clause for each limit that the caps set, and each value that they lowered. */
      readonly lowered: readonly string[];
      /** By copyJson, before the caps. */
      readonly weight: number;
    }
  | { readonly violation: Violation };

const DEFAULT_CONTAINER = 'kubectl.kubernetes.io/default-container';
const CONFIG = 'spec.controllerTargetMutationConfig';

/**
 * Removes from a copy of `podTemplate` what the config does not keep, applies the config, the JSON
 * patch, and last the caps, so that no patch exceeds them. The workload's labels always go;
 * `planPodLabels` adds some back. Throws `PlanTooLarge`.
 */
export function mutatePodTemplate(
  podTemplate: unknown,
  config: ControllerTargetMutationConfig | undefined,
  caps: ResourceCaps,
  budget: PlanBudget = new PlanBudget(),
): MutatedTemplate {
  const copied = copyTemplate(podTemplate, 'the pod template', 'correct the workload, or spec.podSpec', budget);
  if ('violation' in copied) return copied;
  const violation = config ? applyConfig(copied.template, config, budget) : applyDefaults(copied.template);
  if (violation) return { violation };
  const operations: unknown = config ? own(config, 'patchSpecOperations') : undefined;
  const patched = patch(copied, operations, budget);
  if ('violation' in patched) return patched;
  const { template, weight } = patched;
  const capped = capResources(template.spec, caps, budget);
  return 'violation' in capped ? capped : { template, lowered: capped.lowered, weight };
}

function applyDefaults(template: PodTemplate): undefined {
  delete template.metadata['labels'];
  delete template.spec['terminationGracePeriodSeconds'];
}

/** All but the JSON patch, in place. */
function applyConfig(
  template: PodTemplate,
  config: ControllerTargetMutationConfig,
  budget: PlanBudget,
): Violation | undefined {
  const { patchSpecOperations: _, ...fields } = config;
  const copied = budget.copy(fields);
  if ('problem' in copied) {
    const message = `${CONFIG} ${copied.problem}; correct it`;
    return { code: 'InvalidTemplate', message, field: CONFIG, status: 422 };
  }
  const setting = (field: keyof ControllerTargetMutationConfig): unknown => own(copied.value, field);
  const { metadata, spec } = template;

  const resolved = defaultContainer(template, setting('defaultContainerName'));
  if ('violation' in resolved) return resolved.violation;
  const { container } = resolved;
  if (setting('keepTerminationGracePeriod') !== true) delete spec['terminationGracePeriodSeconds'];
  if (setting('keepLivenessProbe') !== true) delete container['livenessProbe'];
  if (setting('keepReadinessProbe') !== true) delete container['readinessProbe'];
  if (setting('keepStartupProbe') !== true) delete container['startupProbe'];
  if (setting('keepTopologySpreadConstraints') !== true) delete spec['topologySpreadConstraints'];
  if (setting('purgeAnnotations') === true) delete metadata['annotations'];

  merge(metadata, 'annotations', setting('podAnnotations'));
  merge(spec, 'nodeSelector', setting('nodeSelector'));
  delete metadata['labels'];
  merge(metadata, 'labels', setting('podLabels'));

  const [command, args, env, resources] = [setting('command'), setting('args'), setting('env'), setting('resources')];
  if (Array.isArray(command)) {
    container['command'] = command;
    container['args'] = [];
  }
  if (Array.isArray(args)) container['args'] = args;
  if (isRecord(resources) && Object.keys(resources).length > 0) container['resources'] = resources;
  if (Array.isArray(env) && env.length > 0) {
    container['env'] = [...(Array.isArray(container['env']) ? container['env'] : []), ...env];
  }
  return undefined;
}

type ResolvedContainer = { readonly container: JsonObject } | { readonly violation: Violation };

/** Named by the config, else by kubectl's annotation, else the first. Code `InvalidTemplate`. */
function defaultContainer(template: PodTemplate, configured: unknown): ResolvedContainer {
  const { containers } = template.spec;
  const annotated = own(own(template.metadata, 'annotations'), DEFAULT_CONTAINER);
  const byConfig = typeof configured === 'string' && configured !== '';
  const name = byConfig ? configured : annotated;
  if (typeof name !== 'string' || name === '') return { container: containers[0] ?? {} };
  const container = containers.find((candidate) => own(candidate, 'name') === name);
  if (container) return { container };
  const names = containers.map((candidate) => String(own(candidate, 'name'))).join(', ');
  const field = `${CONFIG}.defaultContainerName`;
  const source = byConfig ? field : `the annotation ${DEFAULT_CONTAINER} of the workload`;
  const remedy = byConfig ? 'name one of these' : `name one of these in ${field}`;
  const message = `${source} names the container ${quote(name)}; the pod template has ${quote(names, 256)}: ${remedy}`;
  return { violation: { code: 'InvalidTemplate', message, field, status: 422 } };
}

/** Replaces a value that is not a map. */
function merge(object: JsonObject, field: string, entries: unknown): void {
  if (!isRecord(entries) || Object.keys(entries).length === 0) return;
  const map = isRecord(object[field]) ? object[field] : {};
  for (const key of Object.keys(entries)) map[key] = entries[key];
  object[field] = map;
}

function patch(copied: Copied, operations: unknown, budget: PlanBudget): CopiedTemplate {
  if (!Array.isArray(operations) || operations.length === 0) return copied;
  const patched = applyJsonPatch(copied.template, operations, budget);
  return 'violation' in patched
    ? patched
    : copyTemplate(patched.document, 'after patchSpecOperations the pod template', 'correct the patch', budget);
}

interface Copied {
  readonly template: PodTemplate;
  readonly weight: number;
}

type CopiedTemplate = Copied | { readonly violation: Violation };

/** Checks the shape that the other functions rely on. */
function copyTemplate(value: unknown, what: string, remedy: string, budget: PlanBudget): CopiedTemplate {
  const unusable = (why: string): { readonly violation: Violation } => ({
    violation: { code: 'InvalidTemplate', message: `${what} ${why}; ${remedy}`, status: 422 },
  });
  const copied = budget.copy(value);
  if ('problem' in copied) return unusable(copied.problem);
  const spec = own(copied.value, 'spec');
  if (!isRecord(copied.value) || !isRecord(spec)) return unusable('has no spec');
  const containers = own(spec, 'containers');
  if (!Array.isArray(containers) || containers.length === 0) return unusable('has no containers');
  if (!containers.every(isRecord)) return unusable('has a container that is not an object');
  const metadata = own(copied.value, 'metadata');
  const template = { ...copied.value, metadata: isRecord(metadata) ? metadata : {}, spec: { ...spec, containers } };
  return { template, weight: copied.weight };
}

/** By these, other software injects a cloud identity, secrets, or a mesh sidecar. */
const activatingPrefixes = [
  'iam.amazonaws.com/',
  'eks.amazonaws.com/',
  'iam.gke.io/',
  'azure.workload.identity/',
  'vault.hashicorp.com/',
  'consul.hashicorp.com/',
  'sidecar.istio.io/',
  'proxy.istio.io/',
  'linkerd.io/',
  'config.linkerd.io/',
  'dapr.io/',
];

/** Access pods inherit these values, which disable software that may be enabled by default. */
const disabledValues: ReadonlySet<unknown> = new Set(['false', 'disabled']);

/** What access pods inherit of a workload's annotations, unless the config purges them. */
export function copiedAnnotations(annotations: unknown): unknown {
  if (!isRecord(annotations)) return annotations;
  const inherited = Object.entries(annotations).filter(
    ([key, value]) => disabledValues.has(value) || !activatingPrefixes.some((prefix) => key.startsWith(prefix)),
  );
  return Object.fromEntries(inherited);
}

/**
 * Other ServiceAccounts have permissions and cloud identities, and an access pod needs only image
 * pull secrets. The fields stay, so that a patch can replace them.
 */
export function underDefaultAccount(podTemplate: unknown, pullSecrets: readonly string[]): unknown {
  const spec = own(podTemplate, 'spec');
  if (!isRecord(podTemplate) || !isRecord(spec)) return podTemplate;
  const fields = ['serviceAccountName', 'serviceAccount'].filter((field) => Object.hasOwn(spec, field));
  const account = Object.fromEntries(fields.map((field) => [field, 'default']));
  const imagePullSecrets = pullSecrets.length === 0 ? {} : { imagePullSecrets: pullSecrets.map((name) => ({ name })) };
  return { ...podTemplate, spec: { ...spec, ...account, ...imagePullSecrets } };
}

/**
 * No token, and no annotations that inject identities, secrets, or sidecars; projected token
 * volumes stay. Call it before the template is applied, which may add these. Throws `PlanTooLarge`.
 */
export function withoutIdentity(podTemplate: unknown, budget: PlanBudget): unknown {
  const [metadata, spec] = [own(podTemplate, 'metadata'), own(podTemplate, 'spec')];
  if (!isRecord(podTemplate) || !isRecord(spec)) return podTemplate;
  const tokenless = { ...podTemplate, spec: { ...spec, automountServiceAccountToken: false } };
  if (!isRecord(metadata)) return tokenless;
  budget.spend(valueWeight * activatingPrefixes.length * Object.keys(metadata['annotations'] ?? {}).length);
  return { ...tokenless, metadata: { ...metadata, annotations: copiedAnnotations(metadata['annotations']) } };
}
