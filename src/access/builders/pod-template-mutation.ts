import type { ControllerTargetMutationConfig } from '../../api/access/mutation-config.ts';
import { quote } from '../../kit/errors.ts';
import { isRecord, type JsonObject, own, valueWeight } from '../../kit/json-value.ts';
import type { Violation } from '../policy/policy.ts';
import { applyJsonPatch } from './json-patch.ts';
import { PlanBudget } from './plan-budget.ts';
import { capResources, type ResourceCaps } from './resource-caps.ts';

/** A PodTemplateSpec with a metadata object and a spec with at least one container. */
export interface PodTemplate extends JsonObject {
  metadata: JsonObject;
  spec: JsonObject & { containers: JsonObject[] };
}

/** The result of a mutation: the template with what was changed in it, or why it cannot be mutated. */
export type MutatedTemplate =
  | {
      readonly template: PodTemplate;
      /** The limits that the caps set, and the values that they lowered, one clause each. */
      readonly lowered: readonly string[];
      /** The weight by copyJson, before the caps. */
      readonly weight: number;
    }
  | { readonly violation: Violation };

const DEFAULT_CONTAINER = 'kubectl.kubernetes.io/default-container';
const CONFIG = 'spec.controllerTargetMutationConfig';

/**
 * Builds the pod template of an access pod from a copy of `podTemplate`. In this order, it removes what the config does not keep, sets
 * annotations, node selector, labels, command, args, resources, and env, applies the JSON patch, and applies the caps, so that no patch can
 * exceed them. It always removes the workload's labels, so that no Service selects the pod by them; `planPodLabels` adds some of them back.
 * Without a config, it removes only the labels and the grace period, and keeps probes and topology spread constraints.
 * Accepts any value as the template, and changes none of its inputs. Codes `InvalidPodTemplate`, `InvalidMutationConfig`,
 * `ContainerNotFound`, `InvalidPatch`, and `InvalidQuantity`. Throws `PlanTooLarge` once `budget` is spent.
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

/** Removes what an access pod without a config does not keep. */
function applyDefaults(template: PodTemplate): undefined {
  delete template.metadata['labels'];
  delete template.spec['terminationGracePeriodSeconds'];
}

/** Applies the config without its JSON patch, in place. Returns the violation if it cannot. */
function applyConfig(
  template: PodTemplate,
  config: ControllerTargetMutationConfig,
  budget: PlanBudget,
): Violation | undefined {
  const { patchSpecOperations: _, ...fields } = config;
  const copied = budget.copy(fields);
  if ('problem' in copied) {
    const message = `${CONFIG} ${copied.problem}; correct it`;
    return { code: 'InvalidMutationConfig', message, field: CONFIG, status: 422 };
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

/** The container named by the config, else by kubectl's annotation, else the first. `ContainerNotFound` if no container has the name. */
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
  return { violation: { code: 'ContainerNotFound', message, field, status: 422 } };
}

/** Adds entries to the map at `field`. Creates the map if it is absent, and replaces a value that is not a map. */
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

/** Copies `value` completely, and checks the shape that the other functions rely on. */
function copyTemplate(value: unknown, what: string, remedy: string, budget: PlanBudget): CopiedTemplate {
  const unusable = (why: string): { readonly violation: Violation } => ({
    violation: { code: 'InvalidPodTemplate', message: `${what} ${why}; ${remedy}`, status: 422 },
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

/** Prefixes of annotations by which other software injects a cloud identity, secrets, or a mesh sidecar into the pod. */
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

/** Values that disable such software. Access pods inherit annotations with these values, because the software may be enabled by default. */
const disabledValues: ReadonlySet<unknown> = new Set(['false', 'disabled']);

/**
 * The annotations of a workload's pod template that its access pods inherit, unless the config purges them. A patch can add any annotation.
 */
export function copiedAnnotations(annotations: unknown): unknown {
  if (!isRecord(annotations)) return annotations;
  const inherited = Object.entries(annotations).filter(
    ([key, value]) => disabledValues.has(value) || !activatingPrefixes.some((prefix) => key.startsWith(prefix)),
  );
  return Object.fromEntries(inherited);
}

/**
 * Replaces the ServiceAccount with `default`: a ServiceAccount has permissions and cloud identities, and an access pod needs only its image
 * pull secrets. `pullSecrets`, if there are any, replace those of the pod. Keeps the fields that exist, so that a patch can replace them.
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
 * Disables the automatic mount of the token, and removes annotations by which other software injects identities, secrets, or sidecars.
 * Keeps projected token volumes. Call it before the access template is applied, so that the template can enable the mount and add such
 * annotations. Throws `PlanTooLarge` once `budget` is spent.
 */
export function withoutIdentity(podTemplate: unknown, budget: PlanBudget): unknown {
  const [metadata, spec] = [own(podTemplate, 'metadata'), own(podTemplate, 'spec')];
  if (!isRecord(podTemplate) || !isRecord(spec)) return podTemplate;
  const tokenless = { ...podTemplate, spec: { ...spec, automountServiceAccountToken: false } };
  if (!isRecord(metadata)) return tokenless;
  budget.spend(valueWeight * activatingPrefixes.length * Object.keys(metadata['annotations'] ?? {}).length);
  return { ...tokenless, metadata: { ...metadata, annotations: copiedAnnotations(metadata['annotations']) } };
}
