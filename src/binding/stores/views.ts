import type { BindCondition } from '../../api/binding/condition.ts';
import type { Owner } from '../../api/binding/names.ts';
import type { OwnerReference } from '../../api/object.ts';
import type { Projected } from '../../kube/store.ts';

/** What stores keep of the kinds of kube-bind. Readers fill in defaults; what does not read is left out of the store and logged. */

export interface GroupResource {
  /** Empty for the core group. */
  readonly group: string;
  readonly resource: string;
}

export interface SecretKeyRef {
  readonly namespace: string;
  readonly name: string;
  readonly key: string;
}

/** What is kept of the metadata of each of them; annotations without kubectl's last-applied-configuration. */
export interface CommonView extends Projected {
  readonly name: string;
  readonly generation: number;
  readonly deleting: boolean;
  readonly finalizers: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly ownerReferences: readonly OwnerReference[];
  /** What is wrong with a spec that cannot be read; all that comes from it is empty then. Of the kinds whose absence would end something. */
  readonly unreadable?: string;
}

export interface BindingView extends CommonView {
  readonly secretRef: SecretKeyRef;
  readonly conditions: readonly BindCondition[];
  readonly providerPrettyName: string | undefined;
  readonly boundSchemas: readonly GroupResource[];
  readonly permissionClaims: readonly PermissionClaim[];
}

export interface BundleView extends CommonView {
  readonly secretRef: SecretKeyRef;
  readonly conditions: readonly BindCondition[];
}

export type InformerScope = 'Cluster' | 'Namespaced';
export type IsolationName = 'Prefixed' | 'Namespaced' | 'None';

export interface ExportView extends CommonView {
  readonly namespace: string;
  readonly resources: readonly (GroupResource & { readonly versions: readonly string[] })[];
  readonly permissionClaims: readonly PermissionClaim[];
  readonly informerScope: InformerScope;
  readonly isolation: IsolationName;
  readonly conditions: readonly BindCondition[];
}

export interface PermissionClaim extends GroupResource {
  readonly selector: {
    readonly labelSelector?: {
      matchLabels?: Record<string, string>;
      matchExpressions?: { key: string; operator: string; values?: string[] }[];
    };
    readonly namedResources?: readonly { readonly name: string; readonly namespace?: string }[];
    readonly references?: readonly (GroupResource & {
      readonly versions?: readonly string[];
      readonly jsonPath: { readonly name: string; readonly namespace?: string };
    })[];
  };
}

export interface BoundSchemaView extends CommonView {
  readonly namespace: string;
  readonly informerScope: InformerScope;
  readonly group: string;
  readonly names: {
    readonly plural: string;
    readonly kind: string;
    readonly singular?: string;
    readonly listKind?: string;
    readonly shortNames?: readonly string[];
    readonly categories?: readonly string[];
  };
  readonly scope: 'Cluster' | 'Namespaced';
  readonly versions: readonly BoundVersion[];
  /** As found; copied into the CRD. */
  readonly conversion: unknown;
  readonly conditions: readonly BindCondition[];
  readonly acceptedNames: unknown;
  readonly storedVersions: readonly string[];
}

export interface BoundVersion {
  readonly name: string;
  readonly served: boolean;
  readonly storage: boolean;
  readonly deprecated?: boolean;
  readonly deprecationWarning?: string;
  /** The OpenAPI v3 schema itself, out of its wrapper when it had one. */
  readonly schema: unknown;
  /** As found; `status` present means that status is a subresource. */
  readonly subresources: { readonly status?: unknown; readonly scale?: unknown };
  readonly additionalPrinterColumns: readonly unknown[];
}

/** An APIServiceNamespace: which namespace of the provider stands for one of the consumer. */
export interface ServiceNamespaceView extends CommonView {
  readonly namespace: string;
  /** Set by the backend; undefined until then. */
  readonly serviceNamespace: string | undefined;
  readonly owner: Owner | undefined;
}

export interface ClusterBindingView extends CommonView {
  readonly namespace: string;
  readonly secretRef: { readonly name: string; readonly key: string };
  readonly providerPrettyName: string;
  readonly lastHeartbeatTime: string | undefined;
  readonly heartbeatInterval: string | undefined;
  readonly konnectorVersion: string | undefined;
  readonly consumerSecretRef: { readonly namespace: string; readonly name: string } | undefined;
  readonly conditions: readonly BindCondition[];
}

export interface ExportRequestView extends CommonView {
  readonly namespace: string;
  readonly phase: 'Pending' | 'Failed' | 'Succeeded';
  readonly terminalMessage: string;
}

/** Only whether it is there, and going. */
export interface NamespaceView extends CommonView {}

/** A CustomResourceDefinition of the consumer. */
export interface CrdView extends CommonView {
  readonly established: boolean;
  readonly scope: 'Cluster' | 'Namespaced';
  /** Conditions as metav1 gives them. */
  readonly conditions: readonly {
    readonly type: string;
    readonly status: 'True' | 'False' | 'Unknown';
    readonly reason: string;
    readonly message: string;
    readonly lastTransitionTime: string;
  }[];
  readonly acceptedNames: unknown;
  readonly storedVersions: readonly string[];
}
