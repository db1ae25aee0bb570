"""OpenXR: a layer between programs and a headset's runtime, which hands gaze on and shows what was released."""
