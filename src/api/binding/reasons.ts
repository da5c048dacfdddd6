/** Condition reasons of kube-bind's konnector. They are identical, because clients match on them. */
export const kubeBindReasons = [
  'APIServiceBindingNotFound',
  'APIServiceExportFailed',
  'APIServiceExportNotFound',
  'BoundSchemaFetchFailed',
  'BoundSchemasNotValid',
  'ClusterBindingUpdateFailed',
  'CustomResourceDefinitionCreateFailed',
  'CustomResourceDefinitionUpdateFailed',
  'ForeignCustomResourceDefinition',
  'InformerSyncTimeout',
  'KubeconfigSecretInvalid',
  'KubeconfigSecretNotFound',
  'ListExportsFailed',
  'NA',
  'ParseError',
  'ProviderSecretInvalid',
  'ProviderSecretNotFound',
  'SyncErrors',
  'Unknown',
] as const;

/** Reasons of kube-bind that drawbridge never sets. @testing */
export const unusedReasons = ['ListBindingsFailed', 'ProviderClientError'] as const;

/** Condition reasons that kube-bind does not have. */
export const ownReasons = [
  'APIServiceBindingInvalid',
  'APIServiceExportInvalid',
  'AnotherKonnector',
  'CustomResourceDefinitionNamesNotAccepted',
  'CustomResourceDefinitionNotWritten',
  'CustomResourceDefinitionTerminating',
  'ExportsVanished',
  'ForeignConsumerSecret',
  'InformersSyncing',
  'InvalidClaimableAnnotation',
  'InvalidPermissionClaim',
  'ObjectsNotInSync',
  'ResourceNotAllowed',
  'Unbinding',
] as const;

/** Every reason of a condition. */
export type BindReason = (typeof kubeBindReasons)[number] | (typeof ownReasons)[number];
