using Eyestream;
using UnityEngine;

/// <summary>A marker as large as the error to expect: about half of the gaze lies within it. Put it on a sphere.
/// A release is one to two and a half seconds old, and in the coordinates of the head as it was then.</summary>
public sealed class GazeMarker : MonoBehaviour
{
    const float LargestDegrees = 60f, ChunksUntilOld = 3f;

    public EyestreamClient client;
    [Tooltip("The camera of the headset")]
    public Transform head;
    public float metres = 2f;
    [Tooltip("Degrees, where the stream tells no error")]
    public float errorElse = 10f;

    void OnEnable() { client.onGaze.AddListener(Show); }

    void OnDisable() { client.onGaze.RemoveListener(Show); }

    void Update()
    {
        if (client.LastChunk == null || Time.unscaledTime - client.LastChunkCame > ChunksUntilOld * client.LastChunk.Description.SecondsOfChunk) Hide();
    }

    void Show(GazeSample sample)
    {
        if (sample.Lost > 0.5f || float.IsNaN(sample.X) || float.IsNaN(sample.Y))
        {
            Hide();
            return;
        }
        float error = float.IsNaN(sample.Error) ? errorElse : Mathf.Min(sample.Error, LargestDegrees);
        transform.position = head.position + head.rotation * (metres * EyestreamClient.Direction(sample));
        transform.localScale = 2f * metres * Mathf.Tan(error * Mathf.Deg2Rad) * Vector3.one;
    }

    void Hide() { transform.localScale = Vector3.zero; }
}
