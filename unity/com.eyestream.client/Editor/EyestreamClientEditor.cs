using UnityEditor;
using UnityEngine;

namespace Eyestream
{
    /// <summary>Shows what the client hears while the scene plays, and settings that cannot work before it does.</summary>
    [CustomEditor(typeof(EyestreamClient))]
    public sealed class EyestreamClientEditor : Editor
    {
        public override bool RequiresConstantRepaint() { return Application.isPlaying; }

        public override void OnInspectorGUI()
        {
            DrawDefaultInspector();
            var client = (EyestreamClient)target;
            if (Application.isPlaying && client.Feed != null) Show(client);
            else Check(client);
        }

        static void Check(EyestreamClient client)
        {
            var place = new BrokerPlace { Host = client.host, Port = client.port, Tls = client.tls, PinnedSha256 = client.pinnedSha256, User = client.user };
            foreach (string wrong in new[] { place.Wrong(), BrokerPlace.WrongName("device", client.device), BrokerPlace.WrongName("stream", client.stream) })
                if (wrong.Length > 0) EditorGUILayout.HelpBox(wrong, MessageType.Error);
        }

        static void Show(EyestreamClient client)
        {
            Feed feed = client.Feed;
            EditorGUILayout.LabelField("Status", feed.Status.ToString());
            string left = double.IsNaN(feed.BudgetSeconds) ? "not known" : (feed.BudgetSeconds / 60).ToString("F0") + " min of this " + feed.Budget.Ceiling;
            EditorGUILayout.LabelField("Budget", left);
            EditorGUILayout.LabelField("Last chunk", client.LastChunk == null ? "none" : Age(client) + " s ago, epsilon " + client.LastChunk.Epsilon.ToString("G3"));
            if (client.LastChunk != null && client.LastChunk.Kind == ChunkKind.Gaze)
            {
                GazeSample gaze = client.LastChunk.Gaze(client.LastChunk.Rows - 1);
                EditorGUILayout.LabelField("Gaze", gaze.X.ToString("F1") + ", " + gaze.Y.ToString("F1") + " within " + gaze.Error.ToString("F1") + " degrees");
            }
            EditorGUILayout.LabelField("Refused, dropped, repeated", feed.Refusals + ", " + feed.Dropped + ", " + feed.Repeated);
            if (feed.Description != null) EditorGUILayout.HelpBox(feed.Description.Guarantee, MessageType.Info);
        }

        static string Age(EyestreamClient client) { return (Time.unscaledTime - client.LastChunkCame).ToString("F0"); }
    }
}
