/** The part of a Pod that the host kubelet reads. */
export interface PodManifest {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly labels?: Readonly<Record<string, string>>;
    readonly deletionTimestamp?: string;
  };
  readonly spec: {
    readonly nodeName?: string;
    readonly serviceAccountName: string;
    readonly restartPolicy: 'Always' | 'OnFailure' | 'Never';
    readonly terminationGracePeriodSeconds: number;
    readonly volumes?: readonly Volume[];
    readonly containers: readonly [Container];
  };
  readonly status?: { readonly phase?: string; readonly conditions?: readonly { readonly type: string }[] };
}

export interface Container {
  readonly name: string;
  readonly image: string;
  /** Default: the command of the image. */
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly {
    readonly name: string;
    readonly value?: string;
    readonly valueFrom?: { readonly secretKeyRef?: { readonly name: string; readonly key: string } };
  }[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
  readonly readinessProbe?: {
    readonly httpGet: { readonly path: string; readonly port: string };
    readonly failureThreshold?: number;
  };
  readonly lifecycle?: { readonly preStop?: { readonly sleep: { readonly seconds: number } } };
}

export interface VolumeSource {
  readonly secret?: { readonly secretName?: string; readonly name?: string };
  readonly configMap?: { readonly name: string };
  readonly emptyDir?: object;
  readonly serviceAccountToken?: { readonly path: string };
  readonly downwardAPI?: { readonly items: readonly { readonly path: string }[] };
}

export interface Volume extends VolumeSource {
  readonly name: string;
  readonly projected?: { readonly sources: readonly VolumeSource[] };
}
