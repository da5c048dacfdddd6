/** kube-bind's own form of a condition; not metav1.Condition. */
export interface BindCondition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  /** Only when False. */
  severity?: 'Error' | 'Warning' | 'Info';
  /** Whole seconds, UTC. */
  lastTransitionTime: string;
  reason?: string;
  message?: string;
}
