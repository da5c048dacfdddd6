/** Condition reasons with the names that kube-bind's konnector uses, because clients match on these names. */
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

/** Condition reasons that drawbridge adds to those of kube-bind. */
export const addedReasons = [
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

/** A reason that the server may set on a condition. */
export type BindReason = (typeof kubeBindReasons)[number] | (typeof addedReasons)[number];
