import { type ApiServiceBinding, apiServiceBindingKind } from '../../api/binding/api-service-binding.ts';
import {
  type ApiServiceBindingBundle,
  apiServiceBindingBundleKind,
} from '../../api/binding/api-service-binding-bundle.ts';
import { type BindCondition, readBindConditions } from '../../api/binding/condition.ts';
import type { GroupResource } from '../../api/binding/group-resource.ts';
import { apiServiceBindingBundles, apiServiceBindings } from '../../api/binding/names.ts';
import { type PermissionClaim, readPermissionClaims } from '../../api/binding/permission-claim.ts';
import type { SecretKeyRef } from '../../api/binding/secret-key-ref.ts';
import { type Condition, type KubeObject, keyOf } from '../../api/object.ts';
import { customResourceDefinitions, namespaces } from '../../api/resources.ts';
import { own, strings } from '../../kit/json-value.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { text } from '../../kube/fields.ts';
import type { Store } from '../../kube/store.ts';
import { type Log, noLog } from '../../observe/log.ts';
import { type CommonView, commonView, objectsIn } from './common-view.ts';
import { type OpenedStores, openStores, projection, type ViewBuilder } from './open-stores.ts';

/** Absent fields of the spec have the defaults of the schema. */
export interface BindingView extends CommonView {
  readonly secretRef: SecretKeyRef;
  readonly conditions: readonly BindCondition[];
  /** From the status, like the next two fields. */
  readonly providerPrettyName: string | undefined;
  readonly boundSchemas: readonly GroupResource[];
  readonly permissionClaims: readonly PermissionClaim[];
}

export interface BundleView extends CommonView {
  readonly secretRef: SecretKeyRef;
  readonly conditions: readonly BindCondition[];
}

export interface NamespaceView extends CommonView {}

export interface CrdView extends CommonView {
  readonly established: boolean;
  readonly scope: 'Cluster' | 'Namespaced';
  readonly conditions: readonly Condition[];
  /** From the status, not validated. */
  readonly acceptedNames: unknown;
  readonly storedVersions: readonly string[];
}

/** Open as long as the feature runs. Secrets and bound objects have their own watches. */
export interface ConsumerStores {
  readonly bindings: Store<BindingView>;
  readonly bundles: Store<BundleView>;
  readonly namespaces: Store<NamespaceView>;
  readonly crds: Store<CrdView>;
}

/** By `namespace/name` of the Secret. Omits bindings that are not valid. */
export const bySecret = 'secret';

/** Bindings and bundles sync only once their CRDs exist. */
export function openConsumerStores(cluster: Cluster, log: Log = noLog): OpenedStores<ConsumerStores> {
  return openStores(cluster, (open) => ({
    bindings: open<BindingView>({
      resource: apiServiceBindings,
      project: projection(apiServiceBindingKind, bindingView, log, blankBinding),
      indexes: { [bySecret]: secretOf },
    }),
    bundles: open<BundleView>({
      resource: apiServiceBindingBundles,
      project: projection(apiServiceBindingBundleKind, bundleView, log),
      indexes: { [bySecret]: secretOf },
    }),
    namespaces: open({ resource: namespaces, project: commonView }),
    crds: open({ resource: customResourceDefinitions, project: crdView }),
  }));
}

const secretOf = ({ secretRef, specProblem }: BindingView | BundleView): string[] =>
  specProblem === undefined ? [keyOf(secretRef)] : [];

const bindingView: ViewBuilder<ApiServiceBinding['spec'], BindingView> = (common, spec, { status }) => ({
  ...common,
  secretRef: spec.kubeconfigSecretRef,
  conditions: readBindConditions(status),
  providerPrettyName: text(status, 'providerPrettyName'),
  boundSchemas: objectsIn(status, 'boundSchemas').flatMap(groupResource),
  permissionClaims: readPermissionClaims(own(status, 'permissionClaims')),
});

const blankBinding: ApiServiceBinding['spec'] = { kubeconfigSecretRef: { namespace: '', name: '', key: '' } };

const bundleView: ViewBuilder<ApiServiceBindingBundle['spec'], BundleView> = (common, spec, { status }) => ({
  ...common,
  secretRef: spec.kubeconfigSecretRef,
  conditions: readBindConditions(status),
});

function groupResource(value: unknown): GroupResource[] {
  const resource = text(value, 'resource');
  return resource ? [{ group: text(value, 'group') ?? '', resource }] : [];
}

/** Without the schemas, which are most of its size. */
function crdView(object: KubeObject): CrdView | undefined {
  const common = commonView(object);
  if (!common) return undefined;
  const { spec, status } = object;
  const conditions = objectsIn(status, 'conditions').flatMap(condition);
  return {
    ...common,
    established: isEstablished(object),
    scope: own(spec, 'scope') === 'Cluster' ? 'Cluster' : 'Namespaced',
    conditions,
    acceptedNames: own(status, 'acceptedNames'),
    storedVersions: strings(own(status, 'storedVersions')),
  };
}

function condition(value: unknown): CrdView['conditions'][number][] {
  const type = text(value, 'type');
  const status = own(value, 'status');
  if (!type || (status !== 'True' && status !== 'False' && status !== 'Unknown')) return [];
  return [
    {
      type,
      status,
      reason: text(value, 'reason') ?? '',
      message: text(value, 'message') ?? '',
      lastTransitionTime: text(value, 'lastTransitionTime') ?? '',
    },
  ];
}

/** Some API servers serve a kind seconds before Established, but none whose names are taken. */
export const mayBeServed = ({ established, conditions }: CrdView): boolean =>
  established || !conditions.some(({ type, status }) => type === 'NamesAccepted' && status === 'False');

/** The API server serves it, or will within moments. */
export const isEstablished = (crd: KubeObject): boolean => hasCondition(crd, 'Established', 'True');

/** It is not served until they are free, which changes the object. */
export const areNamesTaken = (crd: KubeObject): boolean => hasCondition(crd, 'NamesAccepted', 'False');

const hasCondition = ({ status }: KubeObject, type: string, value: 'True' | 'False'): boolean =>
  objectsIn(status, 'conditions').some(
    (condition) => text(condition, 'type') === type && text(condition, 'status') === value,
  );
