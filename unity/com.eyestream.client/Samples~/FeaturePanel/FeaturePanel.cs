using System.Globalization;
using Eyestream;
using UnityEngine;

/// <summary>A panel of two features with the error to expect, and what is left of the budget. Put it on a TextMesh.</summary>
[RequireComponent(typeof(TextMesh))]
public sealed class FeaturePanel : MonoBehaviour
{
    public EyestreamClient client;
    [Tooltip("Names of features; empty: the first two of the stream")]
    public string first = "", second = "";

    void OnEnable()
    {
        client.onChunk.AddListener(Came);
        client.onStatus.AddListener(Said);
        client.onBudget.AddListener(Left);
        Write();
    }

    void OnDisable()
    {
        client.onChunk.RemoveListener(Came);
        client.onStatus.RemoveListener(Said);
        client.onBudget.RemoveListener(Left);
    }

    void Came(Chunk chunk) { Write(); }
    void Said(StreamStatus status) { Write(); }
    void Left(Budget budget) { Write(); }

    void Write()
    {
        Feed feed = client.Feed;
        string text = feed == null ? "not connected" : feed.Status.ToString();
        if (client.LastChunk != null) text += "\n" + Line(client.LastChunk, first, 0) + "\n" + Line(client.LastChunk, second, 1);
        if (feed != null && !double.IsNaN(feed.BudgetSeconds)) text += "\n" + Hours(feed.BudgetSeconds) + " left of this " + feed.Budget.Ceiling;
        GetComponent<TextMesh>().text = text;
    }

    static string Line(Chunk chunk, string name, int otherwise)
    {
        string[] names = chunk.Description.Names;
        if (name.Length == 0 && otherwise >= names.Length) return "";
        if (name.Length == 0) name = names[otherwise];
        float value, error;
        if (!chunk.TryGet(name, out value, out error)) return "no " + name + ": there is " + string.Join(", ", names, 0, Mathf.Min(4, names.Length));
        string unit = chunk.Description.Units[chunk.Description.IndexOf(name)];
        return string.Format(CultureInfo.InvariantCulture, "{0} {1:G3} \u00b1 {2:G2} {3}", name, value, error, unit == "1" ? "" : unit).TrimEnd();
    }

    static string Hours(double seconds)
    {
        int minutes = (int)(seconds / 60);
        return minutes / 60 + " h " + (minutes % 60).ToString("00") + " min";
    }
}
